"""The first steps of an organization: a list that ticks itself."""

from typing import Any, NamedTuple

from django.db.models import Exists, Model, OuterRef, Q
from django.urls import reverse

from connections.models import Connection
from credentials.models import Credential, CredentialDefinition
from tenants.models import Invitation, Membership, Permission, Tenant
from verifications.models import Verification, VerificationPolicy
from webhooks.models import Webhook

ISSUED = (Credential.State.ISSUED, Credential.State.REVOKED)


class Step(NamedTuple):
    """A thing to do first.

    page: the route where it is done. model, done: the rows of which one is enough.
    owner: the lookup of their organization.
    """

    name: str
    label: str
    page: str
    permission: Permission
    model: type[Model]
    done: Q = Q()
    owner: str = "tenant"


# Those of hosted wallets are many more, and the index begins with the wallet.
OWN = Q(wallet__is_organization=True)
STEPS = (
    Step(
        "definition", "Define what your credentials say", "new_definition",
        Permission.OPERATE, CredentialDefinition, Q(deleted_at=None),
    ),
    Step(
        "connection", "Connect with somebody", "new_connection",
        Permission.OPERATE, Connection,
        Q(connectionless=False, state="Connected") & OWN, "wallet__tenant",
    ),
    Step(
        "issue", "Issue a credential", "new_credential",
        Permission.OPERATE, Credential, Q(role="issuer", state__in=ISSUED) & OWN,
        "wallet__tenant",
    ),
    Step(
        "policy", "Say what you ask for", "new_policy",
        Permission.OPERATE, VerificationPolicy,
    ),
    Step(
        "verify", "Verify a proof", "new_verification",
        Permission.OPERATE, Verification, Q(role="verifier", state="Accepted") & OWN,
        "wallet__tenant",
    ),
    Step(
        "webhook", "Have your software told by a webhook", "webhooks",
        Permission.DEVELOP, Webhook,
    ),
    Step(
        "teammate", "Invite a teammate", "members",
        Permission.PEOPLE, Invitation,
    ),
)  # fmt: skip


def checklist_of(membership: Membership) -> list[dict[str, Any]]:
    """The steps with `is_done`, in one query. Empty once all are done.

    url: where a step is done; "" if the person may not do it, and if it is done.
    """
    tenant = membership.tenant
    found = {}
    for step in STEPS:
        rows = step.model._default_manager.filter(**{step.owner: OuterRef("pk")})
        found[f"has_{step.name}"] = Exists(rows.filter(step.done))
    others = Membership.objects.filter(tenant=OuterRef("pk"))
    others = others.exclude(user=membership.user_id)
    found["has_mates"] = Exists(others)
    done = Tenant.objects.filter(pk=tenant.pk).values(**found).get()
    done["has_teammate"] |= done["has_mates"]
    steps = []
    for step in STEPS:
        is_done = done[f"has_{step.name}"]
        is_open = not is_done and membership.may(step.permission)
        page = reverse(f"studio:{step.page}", args=[tenant.pk]) if is_open else ""
        steps.append({"label": step.label, "is_done": is_done, "url": page})
    return [] if all(step["is_done"] for step in steps) else steps
