"""What an organization leaves at its addresses of OpenID4VC when it is deleted."""

from typing import Any, Self

from django.conf import settings
from django.contrib.postgres.indexes import GinIndex
from django.db import models

from tenants.models import Record

MAX_ADDRESS = 200  # characters


class LastDocument(Record):
    """A public document of a deleted organization: a status list, a type, its key.

    Signed for the last time before the keys are destroyed; credentials that it has
    issued are judged by it. path: below PUBLIC_URL. facts: of a type, by which
    restrictions find it, and `issued`, what DefinitionFormat.describe() says.
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
        cls, url: str, media_type: str, body: str, facts: dict[str, Any] | None = None
    ) -> None:
        """Store what `url` answers from now on, in the caller's transaction."""
        path = url.removeprefix(settings.PUBLIC_URL)
        changes = {"media_type": media_type, "body": body, "facts": facts}
        cls.objects.update_or_create(path=path, defaults=changes)

    @classmethod
    def find(cls, url: str) -> Self | None:
        path = url.removeprefix(settings.PUBLIC_URL)
        return cls.objects.filter(path=path[: MAX_ADDRESS + 1]).first()
