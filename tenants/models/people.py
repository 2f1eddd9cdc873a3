"""Members of organizations, their permissions, and invitations."""

from collections.abc import Iterable
from datetime import timedelta

from django.conf import settings
from django.db import models
from django.utils import timezone

from tenants.models.keys import ApiKey, Scope
from tenants.models.names import has_confirmed_email, name_of
from tenants.models.organizations import Tenant
from tenants.models.record import Record

INVITATION_LIFETIME = timedelta(hours=72)


class Role(models.TextChoices):
    OWNER = "owner", "Owner"
    OPERATOR = "operator", "Operator"
    DEVELOPER = "developer", "Developer"
    VIEWER = "viewer", "Viewer"


class Permission(models.TextChoices):
    READ = "read", "See the organization, its exchanges, events and webhooks"
    NAMES = "names", "See the names of people on cards"
    OPERATE = "operate", "Issue and verify, cancel and send again, reveal values"
    DEVELOP = "develop", "Create, rotate and revoke keys; change webhooks"
    CONFIGURE = "configure", "Change the settings"
    PROVIDER_KEYS = "provider_keys", "Create, rotate and revoke provider keys"
    PEOPLE = "people", "Invite, change and remove members"
    LOG = "log", "See and download the log"
    DELETE = "delete", "Delete the organization"


# The one table of who may do what. The page of members shows it.
ROLES_WITH = {
    Permission.READ: frozenset(Role),
    Permission.NAMES: frozenset({Role.OWNER, Role.OPERATOR}),
    Permission.OPERATE: frozenset({Role.OWNER, Role.OPERATOR}),
    Permission.DEVELOP: frozenset({Role.OWNER, Role.DEVELOPER}),
    Permission.CONFIGURE: frozenset({Role.OWNER, Role.DEVELOPER}),
    # A provider key can delete every organization of its account.
    Permission.PROVIDER_KEYS: frozenset({Role.OWNER}),
    Permission.PEOPLE: frozenset({Role.OWNER}),
    Permission.LOG: frozenset({Role.OWNER}),
    Permission.DELETE: frozenset({Role.OWNER}),
}
# Who may make a key with them, and so rotate it. All others: whoever may make keys.
SCOPES_OF_OWNERS = frozenset({Scope.VALUES, Scope.LINKS, Scope.ADMINISTRATION})


class Membership(Record):
    Role = Role

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
    def permissions(self) -> set[str]:
        """Those of the role."""
        return {str(name) for name, roles in ROLES_WITH.items() if self.role in roles}

    def may(self, permission: Permission) -> bool:
        """Return whether the person's role has this permission in the organization."""
        if self.role in ROLES_WITH[permission]:
            return True
        return permission == Permission.NAMES and self.tenant.names_for_all

    def may_issue(self, kind: str) -> bool:
        """Return whether the person may issue and revoke keys of this kind."""
        if kind == ApiKey.Kind.PROVIDER_KEY:
            return self.may(Permission.PROVIDER_KEYS)
        return self.may(Permission.DEVELOP)

    def may_give(self, scopes: Iterable[str]) -> bool:
        """Return whether the person may make an access token with these scopes."""
        if self.role == Role.OWNER:
            return True
        return self.may(Permission.DEVELOP) and SCOPES_OF_OWNERS.isdisjoint(scopes)

    def may_rotate(self, key: ApiKey) -> bool:
        """Return whether the person may have such a key: not with wider scopes."""
        return self.may_issue(key.kind) and self.may_give(key.granted)

    @property
    def name(self) -> str:
        return name_of(self.user)

    @property
    def unconfirmed_email(self) -> str:
        return "" if has_confirmed_email(self.user) else self.user.email

    @property
    def audit_facts(self) -> dict[str, str]:
        return {"person": self.name, "role": self.role}


class Invitation(Record):
    """An open invitation to an organization. It is deleted when it is accepted."""

    tenant = models.ForeignKey(
        Tenant, on_delete=models.CASCADE, related_name="invitations"
    )
    email = models.EmailField(help_text="In lower case.")
    role = models.CharField(max_length=16, choices=Role.choices)
    # Of the token in the link, which only the mail holds.
    digest = models.BinaryField(unique=True)
    # Whether its link was mailed, so that who opens it has confirmed the address; else
    # an owner has passed it on by hand.
    is_mailed = models.BooleanField(default=False, db_default=False)
    invited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
    )
    expires_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["tenant", "email"], name="one_invitation_each"
            )
        ]

    def __str__(self) -> str:
        return f"{self.email} to {self.tenant}"

    @property
    def inviter(self) -> str:
        """The name of who sent it, for the invited. Empty if it says nothing."""
        person = self.invited_by
        return name_of(person) if person and has_confirmed_email(person) else ""

    @property
    def invited_by_name(self) -> str:
        return name_of(self.invited_by) if self.invited_by else "–"

    @property
    def is_expired(self) -> bool:
        return self.expires_at <= timezone.now()

    @property
    def audit_facts(self) -> dict[str, str]:
        return {"person": self.email, "role": self.role}
