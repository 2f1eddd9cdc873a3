"""What was read of others' DIDs of did:webvh: public, checked, and nobody's own.

This module imports no other module of credentials but the checks.
"""

from datetime import datetime

from django.db import models
from django.utils import timezone

from credentials.ledgers.webvh.log import CheckedLog
from credentials.ledgers.webvh.resources import Link, Resource
from tenants.models import Record

MAX_DID = 255
MAX_RESOURCE_ID = 500


class ReadLog(Record):
    """A log as it was last checked, so that only new entries are checked later.

    It is never forgotten: a log that gets shorter or changes is refused for ever.
    log: the members of a CheckedLog.
    """

    did = models.CharField(max_length=MAX_DID, unique=True)
    versions = models.PositiveSmallIntegerField()
    log = models.JSONField()

    def __str__(self) -> str:
        return f"{self.did}, {self.versions} entries"

    @classmethod
    def find(cls, did: str) -> "tuple[CheckedLog, datetime] | None":
        """Return the log of a DID as it was last checked, and when."""
        row = cls.objects.filter(did=did).first()
        if row is None:
            return None
        return CheckedLog(**row.log), row.updated_at

    @classmethod
    def remember(cls, did: str, checked: CheckedLog) -> None:
        """Store a checked log, unless a longer one was stored meanwhile."""
        changes = {"versions": checked.versions, "log": checked._asdict()}
        row = ReadLog(did=did, **changes)
        ReadLog.objects.bulk_create([row], ignore_conflicts=True)
        rows = ReadLog.objects.filter(did=did, versions__lte=checked.versions)
        rows.update(updated_at=timezone.now(), **changes)


class ReadResource(Record):
    """The content of a resource. Its id is the hash of it, so it never changes.

    links: of a registry, as they were at `updated_at`.
    """

    resource_id = models.CharField(max_length=MAX_RESOURCE_ID, unique=True)
    kind = models.CharField(max_length=32)
    content = models.JSONField()
    links = models.JSONField(default=list)

    def __str__(self) -> str:
        return self.resource_id

    @classmethod
    def find(cls, resource_id: str, kind: str) -> "tuple[Resource, datetime] | None":
        """Return a resource, and when it was read."""
        row = cls.objects.filter(resource_id=resource_id, kind=kind).first()
        if row is None:
            return None
        links = [Link(*link) for link in row.links]
        return Resource(row.content, links), row.updated_at

    @classmethod
    def remember(cls, resource_id: str, kind: str, found: Resource) -> None:
        row = ReadResource(
            resource_id=resource_id, kind=kind, content=found.content, links=found.links
        )
        ReadResource.objects.bulk_create(
            [row],
            update_conflicts=True,
            unique_fields=["resource_id"],
            update_fields=["links", "updated_at"],
        )
