"""Token status lists: a public bit for each revocable SD-JWT VC."""

import secrets
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db import models

from core.database.compiled_sql import CompiledQuery, update_rows
from core.work import transactions
from tenants.models import Record, Tenant
from wallets.jose import status_token
from wallets.models import issuer_url

PLACES = 131_072
# Half of them: a place is then found soon, and says nothing about when it was given.
MAX_USED = PLACES // 2


@dataclass(frozen=True)
class Place:
    """The place of a credential in a list. uri: where everybody reads the list."""

    uri: str
    index: int


class TokenStatusList(Record):
    """A list of an organization. A bit that is set: the credential is revoked.

    taken: a bit for each place that was given. It stays set when the credential is
    deleted: its holder still has it. version: grows with each change of the bits.
    """

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    number = models.PositiveIntegerField()
    bits = models.BinaryField()
    # None in a list that was made before this column: it gives no places.
    taken = models.BinaryField(null=True)
    used = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "number"], name="one_status_list_per_number"
            )
        ]

    def __str__(self) -> str:
        return self.uri

    @property
    def uri(self) -> str:
        return f"{issuer_url(self.tenant_id)}/status/{self.number}"

    @classmethod
    @transactions.atomic()
    def take_place(cls, tenant: Tenant) -> Place:
        """Give a random free place to a new credential, in the caller's transaction.

        The list stays locked until that ends, and a deletion of the organization waits:
        it signs the lists for the last time. 404 `not_found` if it was deleted.
        """
        Tenant.put_off_deletion(tenant.pk)
        found = cls._lock_newest(tenant)
        assert found.taken, "it has room"
        taken = bytes(found.taken)
        index = secrets.randbelow(PLACES)
        while status_token.status_at(taken, 1, index):
            index = secrets.randbelow(PLACES)
        changed = status_token.with_bits(taken, [index])
        update_rows(cls, {"id": found.pk}, {"taken": changed, "used": found.used + 1})
        return Place(found.uri, index)

    @classmethod
    def _lock_newest(cls, tenant: Tenant) -> "TokenStatusList":
        """Lock the newest list that has room. A new one, if there is none."""
        found = _locked_newest.first(tenant.pk)
        if found and found.taken and found.used < MAX_USED:
            return found
        number = found.number + 1 if found else 1
        # Another call may make it at the same time: then this one waits for it.
        none = bytes(PLACES // 8)
        TokenStatusList.objects.bulk_create(
            [TokenStatusList(tenant=tenant, number=number, bits=none, taken=none)],
            ignore_conflicts=True,
        )
        found = _locked_newest.first(tenant.pk)
        assert found, "this call or another one has made it"
        return found

    @classmethod
    def revoke_places(cls, tenant_id: UUID, places: Iterable[Place]) -> None:
        """Mark the credentials at these as revoked, in the caller's transaction.

        A deletion of the organization waits for it, as for take_place(). 404
        `not_found` if it was deleted.
        """
        Tenant.put_off_deletion(tenant_id)
        by_number = defaultdict(list)
        for place in places:
            by_number[int(place.uri.rpartition("/")[2])].append(place.index)
        rows = cls.objects.filter(tenant=tenant_id, number__in=by_number)
        # In one order, so that nobody waits in a circle.
        for row in rows.order_by("number").select_for_update(no_key=True):
            bits = status_token.with_bits(bytes(row.bits), by_number[row.number])
            cls.objects.filter(pk=row.pk).update(bits=bits, version=row.version + 1)


_locked_newest = CompiledQuery(
    lambda tenant: (
        TokenStatusList.objects.filter(tenant=tenant)
        .defer("bits")
        .order_by("-number")
        .select_for_update(no_key=True)[:1]
    ),
    UUID,
)
