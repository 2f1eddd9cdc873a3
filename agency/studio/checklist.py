"""The first steps of an organization: a list that ticks itself."""

from typing import NamedTuple

from django.db.models import Exists, Model, OuterRef, Q
from django.urls import reverse

from connections.models import Connection
from credentials.models import Credential, CredentialDefinition
from tenants.models import Invitation, Membership, Permission, Tenant
from verifications.models import Kiosk, Verification, VerificationPolicy
from webhooks.models import Webhook

ISSUED = (Credential.State.ISSUED, Credential.State.REVOKED)


class Step(NamedTuple):
    """A thing to do first.

    page: the route where it is done. model, done: the rows of which one is enough.
    owner: the lookup of their organization. kinds: those of the pages of one object
    on the way to it.
    """

    name: str
    label: str
    page: str
    permission: Permission
    model: type[Model]
    done: Q = Q()
    owner: str = "tenant"
    kinds: tuple[str, ...] = ()


# Those of hosted wallets are many more, and the index begins with the wallet.
OWN = Q(wallet__is_organization=True)
# They lead to the first verified proof. The next one stands above the pages.
STORY = (
    Step(
        "definition", "Define a card: what stands on it", "new_definition",
        Permission.OPERATE, CredentialDefinition, Q(deleted_at=None),
        kinds=("definition",),
    ),
    Step(
        "issue", "Issue it to somebody", "new_credential",
        Permission.OPERATE, Credential, Q(role="issuer", state__in=ISSUED) & OWN,
        "wallet__tenant", ("credential",),
    ),
    Step(
        "verify", "Check it: ask for a proof", "new_verification",
        Permission.OPERATE, Verification, Q(role="verifier", state="Accepted") & OWN,
        "wallet__tenant", ("verification", "policy"),
    ),
)  # fmt: skip
# What may follow the first verified proof, in any order.
MORE_STEPS = (
    Step(
        "connection", "Connect with somebody", "new_connection",
        Permission.OPERATE, Connection,
        Q(connectionless=False, state="Connected") & OWN, "wallet__tenant",
    ),
    Step(
        "policy", "Write a policy of your own", "new_policy",
        Permission.OPERATE, VerificationPolicy,
    ),
    Step(
        "kiosk", "Put a screen at your door", "new_kiosk",
        Permission.OPERATE, Kiosk,
    ),
    Step(
        "teammate", "Invite a teammate", "members",
        Permission.PEOPLE, Invitation,
    ),
    Step(
        "webhook", "Have your software told by a webhook", "webhooks",
        Permission.DEVELOP, Webhook,
    ),
)  # fmt: skip
STEPS = STORY + MORE_STEPS


class NextStep(NamedTuple):
    """number: from 1. kinds: of its pages. url: of the page where it is done."""

    number: int
    total: int
    kinds: tuple[str, ...]
    label: str
    url: str


class OpenStep(NamedTuple):
    """A step on the page. url: where it is done; "" if it is, or not by this person."""

    label: str
    is_done: bool
    url: str


def checklist_of(membership: Membership) -> list[OpenStep]:
    """The steps, in one query. Empty once all are done."""
    done = find_done(membership, STEPS)
    steps = []
    for step in STEPS:
        is_done = done[step.name]
        is_open = not is_done and membership.may(step.permission)
        url = page_of(membership, step) if is_open else ""
        steps.append(OpenStep(step.label, is_done, url))
    return [] if all(step.is_done for step in steps) else steps


def next_step_of(membership: Membership) -> NextStep | None:
    """The next step of the story, in one query. None if the person may not do it."""
    done = find_done(membership, STORY)
    for number, step in enumerate(STORY, start=1):
        if not done[step.name]:
            if not membership.may(step.permission):
                return None
            url = page_of(membership, step)
            return NextStep(number, len(STORY), step.kinds, step.label, url)
    return None


def find_done(membership: Membership, steps: tuple[Step, ...]) -> dict[str, bool]:
    """Whether each step is done, by its name."""
    found = {}
    for step in steps:
        rows = step.model._default_manager.filter(**{step.owner: OuterRef("pk")})
        found[f"has_{step.name}"] = Exists(rows.filter(step.done))
    others = Membership.objects.filter(tenant=OuterRef("pk"))
    others = others.exclude(user=membership.user_id)
    tenants = Tenant.objects.filter(pk=membership.tenant_id)
    has = tenants.values(**found, has_mates=Exists(others)).get()
    done = {step.name: has[f"has_{step.name}"] for step in steps}
    if has["has_mates"]:
        done["teammate"] = True
    return done


def page_of(membership: Membership, step: Step) -> str:
    return reverse(f"studio:{step.page}", args=[membership.tenant_id])
