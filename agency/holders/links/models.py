"""Links that lead to no connection any more."""

from django.db import models

from tenants.models import Record, Tenant


class ClosedLink(Record):
    """A link whose connection was deleted, so that its page can say why.

    Without it, a withdrawn link could not be told from one that never existed.
    """

    class Reason(models.TextChoices):
        WITHDRAWN = "withdrawn"
        USED = "used"

    class Kind(models.TextChoices):
        """What the link is about."""

        INVITATION = "invitation"
        OFFER = "offer"
        REQUEST = "request"

    tenant = models.ForeignKey(Tenant, on_delete=models.CASCADE)
    token = models.CharField(max_length=32, unique=True)
    kind = models.CharField(max_length=10, choices=Kind.choices)
    reason = models.CharField(max_length=9, choices=Reason.choices)
    # If the exchange of the link goes on over another connection: that connection, and
    # the thread. Without a foreign key: deleting a connection stays as cheap as it is.
    moved_to = models.UUIDField(null=True)
    thread_id = models.CharField(max_length=128, blank=True)

    class Meta:
        indexes = [models.Index(fields=["created_at"])]

    def __str__(self) -> str:
        return f"{self.kind} ({self.reason})"
