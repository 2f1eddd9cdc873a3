"""The API calls of organizations (see tenants/request_log.py)."""

from django.db import models
from django.utils import timezone
from uuid_utils.compat import uuid7

from tenants.models.keys import ApiKey
from tenants.models.organizations import Tenant


class LoggedRequest(models.Model):
    """One API call, without its query, its bodies and the ids in its path."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # When it was answered.
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    tenant = models.ForeignKey(
        Tenant,
        on_delete=models.CASCADE,
        db_index=False,
        related_name="+",
        verbose_name="organization",
    )
    # The access token. Keys are deleted with their organization only, after its log.
    key = models.ForeignKey(
        ApiKey,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    method = models.CharField(max_length=10)
    # The template of the path, such as `/connections/{connectionId}`.
    route = models.CharField(max_length=200)
    status = models.PositiveSmallIntegerField()
    # As in the answer; empty if it was no error.
    error_code = models.CharField(max_length=64, blank=True)
    milliseconds = models.PositiveIntegerField()
    # The X-Request-Id of the answer.
    request_id = models.CharField(max_length=64)
    # The client's IP address (core.net.callers).
    address = models.CharField(max_length=64, blank=True)

    class Meta:
        verbose_name = "API call"
        indexes = [
            models.Index(fields=["tenant", "id"], name="requests_in_time"),
            models.Index(fields=["request_id"], name="requests_by_id"),
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.route} {self.status}"
