"""The log of who changed what (see tenants/audit.py)."""

from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from tenants.models.organizations import Tenant


class AuditEntry(models.Model):
    """One action. A trigger of the database refuses to change or delete the row.

    Only delete_old_entries() of tenants/audit.py may delete it. So the columns that
    name others are no foreign keys: the row outlives the person, key and organization.
    """

    class ActorKind(models.TextChoices):
        PERSON = "person", "Person"
        STAFF = "staff", "Staff, in the admin"
        KEY = "key", "API key"
        COMMAND = "command", "Command"
        SYSTEM = "system", "Agency itself"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    tenant = models.ForeignKey(
        Tenant,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        null=True,
        related_name="+",
        verbose_name="organization",
    )
    action = models.CharField(max_length=40)
    actor_kind = models.CharField(
        "who", max_length=8, choices=ActorKind.choices, db_default="system"
    )
    actor_id = models.CharField(max_length=64, blank=True)
    # A mail address, the beginning of a key, or the name of a command.
    actor_name = models.CharField("name", max_length=254, blank=True)
    object_type = models.CharField(max_length=40)
    object_id = models.CharField(max_length=64)
    # The client's IP address (core.net.callers), or the host of a command.
    origin = models.CharField("from", max_length=64, blank=True)
    reason = models.CharField(max_length=500, blank=True)
    request_id = models.CharField(max_length=64, blank=True)
    # What people should know about the change; never a secret.
    details = models.JSONField(default=dict)

    class Meta:
        verbose_name = "audit entry"
        verbose_name_plural = "audit log"
        indexes = [
            models.Index(fields=["tenant", "id"], name="audit_of_tenant"),
            models.Index(fields=["tenant", "action", "id"], name="audit_by_action"),
            models.Index(fields=["tenant", "actor_name", "id"], name="audit_by_actor"),
            models.Index(fields=["object_id"], name="audit_by_object"),
            models.Index(fields=["created_at"], name="audit_by_time"),
        ]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor_name or self.get_actor_kind_display()}"
