"""What an organization leaves for those who rely on its credentials, once deleted."""

from collections.abc import Iterable, Mapping
from typing import Self

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import Q

from core.text.bounded_json import JSON
from tenants.models import Record

MAX_ADDRESS = 200  # characters


class LastDocument(Record):
    """A public document of a deleted organization: a status list, a type, its key.

    Signed for the last time before the keys are destroyed; credentials that it has
    issued are judged by it. path: below PUBLIC_URL. facts: of a type, by which
    restrictions find it, and `issued`, what DefinitionFormat.describe() says. Of a twin
    only facts are kept: its document is a resource of the did:webvh, which stays.
    """

    tenant_id = None  # it outlives the organization

    path = models.CharField(max_length=MAX_ADDRESS, unique=True)
    media_type = models.CharField(max_length=50)
    body = models.TextField()
    facts = models.JSONField(null=True)

    class Meta:
        indexes = [
            GinIndex(
                fields=["facts"],
                name="last_type_by_facts",
                opclasses=["jsonb_path_ops"],
            )
        ]

    def __str__(self) -> str:
        return self.path

    @classmethod
    def keep(
        cls,
        url: str,
        media_type: str,
        body: str,
        facts: Mapping[str, JSON] | None = None,
    ) -> None:
        """Store what `url` answers from now on, in the caller's transaction."""
        path = url.removeprefix(settings.PUBLIC_URL)
        changes = {"media_type": media_type, "body": body, "facts": facts}
        cls.objects.update_or_create(path=path, defaults=changes)

    @classmethod
    def keep_twin(cls, network_id: str, definition_id: str, twin_of: str) -> None:
        """Note a twin, in the caller's transaction. network_id: of its organization."""
        facts = {"network": network_id, "twin": definition_id, "twinOf": twin_of}
        did, _, digest = definition_id.rpartition("/")
        path = f"/{'/'.join(did.split(':')[4:])}/{digest}"
        cls.keep(path, "", "", facts)

    @classmethod
    def find_twins(
        cls, network_id: str | None, definition_ids: Iterable[str]
    ) -> list[tuple[str, str]]:
        """The twins that are noted, of these or themselves, each with what it is of."""
        asked = Q()
        for one in definition_ids:
            for name in ("twin", "twinOf"):
                asked |= Q(facts__contains={"network": network_id, name: one})
        rows = cls.objects.filter(asked) if asked else cls.objects.none()
        found = rows.order_by("-pk").values_list("facts", flat=True)
        return [(facts["twin"], facts["twinOf"]) for facts in found if facts]

    @classmethod
    def find(cls, url: str) -> Self | None:
        path = url.removeprefix(settings.PUBLIC_URL)
        return cls.objects.filter(path=path[: MAX_ADDRESS + 1]).first()
