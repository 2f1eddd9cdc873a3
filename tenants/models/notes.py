"""Notes: what the owner of an object stores with it for its own programs."""

from typing import Any, TypedDict
from uuid import UUID

from django.db import models
from django.utils import timezone

from core.database.columns import Columns
from core.errors import Invalid, NoSuchObject
from core.work import transactions
from tenants import vault

MAX_REFERENCE = 200
MAX_PAIRS = 20


class Notes(TypedDict, total=False):
    """Notes of a new object, or changes of notes.

    What is left out stays. None clears: the reference, all metadata, or in `metadata`
    one pair; the other pairs stay.
    """

    reference: str | None
    metadata: dict[str, str | None] | None


def merge_pairs(
    kept: dict[str, str], changes: dict[str, str | None] | None
) -> dict[str, str]:
    """The pairs after the changes. 400 `invalid_request` if these are too many."""
    merged = {**kept, **(changes or {})}
    pairs = {name: text for name, text in merged.items() if text is not None}
    if len(pairs) > MAX_PAIRS:
        message = f"These would be {len(pairs)} pairs. {MAX_PAIRS} are the most."
        raise Invalid("invalid_request", message, {"metadata": [message]})
    return pairs


class NotedRow(models.Model):
    """A row with notes of its owner, which no other party sees.

    reference: in clear text, to find the object by; its events have it. metadata: pairs
    of texts, sealed.
    """

    tenant_id: UUID  # subclasses have the column

    reference = models.CharField(
        max_length=MAX_REFERENCE, blank=True, default="", db_default=""
    )
    metadata = models.BinaryField(null=True)

    class Meta:
        abstract = True

    def notes(self) -> Notes:
        """Return its notes, for another object. Decrypts in each call."""
        return {
            "reference": self.reference,
            "metadata": {**(vault.unseal(self, "metadata") or {})},
        }

    def set_notes(self, notes: Notes | None) -> None:
        """Set the columns on this object, before saving. 400 `invalid_request`."""
        if not notes:
            return
        if "reference" in notes:
            self.reference = notes["reference"] or ""
        if "metadata" in notes:
            changes = notes["metadata"]
            kept = {} if changes is None else vault.unseal(self, "metadata") or {}
            vault.seal(self, "metadata", merge_pairs(kept, changes) or None)

    @transactions.atomic()
    def change_notes(self, notes: Notes) -> None:
        """Change the notes of the stored row, in any state and without an event.

        In one transaction, with the lock of this row alone, as nothing else depends on
        its notes. This object does not change. 404 `not_found` if the row was deleted
        meanwhile.
        """
        model = type(self)
        rows = self.noted_rows().filter(pk=self.pk)
        locked = rows.select_for_update(no_key=True)
        row = locked.only("tenant", "reference", "metadata").first()
        if row is None:
            raise NoSuchObject(model, self.pk)
        row.set_notes(notes)
        rows.update(
            reference=row.reference, metadata=row.metadata, **self.times_of_notes()
        )

    @classmethod
    def noted_rows(cls) -> models.QuerySet[Any]:
        """The rows whose notes may change: those that calls find."""
        return cls._default_manager.all()

    def times_of_notes(self) -> Columns:
        """The columns that tell that the notes have changed now."""
        return {"updated_at": timezone.now()}
