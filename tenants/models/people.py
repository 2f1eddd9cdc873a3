"""Members of organizations, and their permissions."""

from django.conf import settings
from django.db import models

from tenants.models.keys import ApiKey
from tenants.models.organizations import Tenant
from tenants.models.record import Record


class Membership(Record):
    """A person in an organization."""

    class Role(models.TextChoices):
        OWNER = "owner", "Owner: everything, people included"
        DEVELOPER = "developer", "Developer: keys"
        VIEWER = "viewer", "Viewer: reads"

    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="memberships"
    )
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.OWNER)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user"], name="one_membership")
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.tenant}"

    @property
    def may_manage_keys(self) -> bool:
        return self.role in (self.Role.OWNER, self.Role.DEVELOPER)

    def may_issue(self, kind: str) -> bool:
        """Return whether the person may issue a key of this kind."""
        if kind == ApiKey.Kind.PROVIDER_KEY:
            # A provider key can delete every organization of its account.
            return self.role == self.Role.OWNER
        return self.may_manage_keys
