"""What somebody made and would go on to use after being removed, or with another role."""

from collections.abc import Iterator
from typing import NamedTuple

from core.work import transactions
from tenants import audit, members
from tenants.models import ApiKey, Membership, Role
from tenants.models.keys import ROTATION_OVERLAP
from webhooks.delivery.health import disable_by_hand
from webhooks.models import Webhook


class Belongings(NamedTuple):
    """keys: live ones that the person made. unclaimed: live ones of which nobody knows
    who made them. webhooks: enabled ones that the person made.
    """

    keys: list[ApiKey]
    unclaimed: list[ApiKey]
    webhooks: list[Webhook]

    @property
    def are_none(self) -> bool:
        return not any(self)


NONE = Belongings([], [], [])


class Choice(NamedTuple):
    """What becomes of them: `kept` and `ended` have ids, as text.

    All that the person made ends, but for what is kept. What nobody is known to have
    made stays, but for what is ended. overlap: keys work for another day.
    """

    kept: frozenset[str] = frozenset()
    ended: frozenset[str] = frozenset()
    overlap: bool = False


def find_belongings(membership: Membership, role: str | None) -> Belongings:
    """What the person could not make with this role. None: without any."""
    after = Membership(role=role) if role else None
    if after and membership.permissions <= after.permissions:
        return NONE
    live = ApiKey.live().filter(ApiKey.is_of(membership.tenant)).order_by("-pk")
    lost = [key for key in live if not (after and after.may_rotate(key))]
    webhooks = Webhook.for_tenant(membership.tenant).filter(is_enabled=True)
    if after and after.may_issue(ApiKey.Kind.ACCESS_TOKEN):
        webhooks = webhooks.none()
    return Belongings(
        [key for key in lost if key.made_by_id == membership.user_id],
        [key for key in lost if key.made_by_id is None],
        list(webhooks.filter(made_by=membership.user).order_by("-pk")),
    )


@transactions.atomic()
def remove_member(membership: Membership, choice: Choice, *, by: audit.Who) -> None:
    end_belongings(membership, None, choice, by=by)
    members.remove_member(membership, by=by)


@transactions.atomic()
def change_role(
    membership: Membership,
    role: Role,
    choice: Choice,
    *,
    by: audit.Who,
    reason: str = "",
) -> None:
    """Give a person another role, and end what they made and could make no longer.

    Raises as members.change_role() does.
    """
    end_belongings(membership, role, choice, by=by)
    members.change_role(membership, role, by=by, reason=reason)


def end_belongings(
    membership: Membership, role: str | None, choice: Choice, *, by: audit.Who
) -> None:
    """In the caller's transaction, whose lock on the organization makes it exact: who
    makes a key or a webhook takes it too.
    """
    tenant = membership.tenant
    tenant.lock_row()
    # As it is now: a role that was given meanwhile may have made more.
    found = find_belongings(members.lock_membership(membership), role)
    for key in keys_to_end(found, choice):
        if choice.overlap:
            key.end_after(ROTATION_OVERLAP)
        else:
            key.revoke()
        hours = 24 if choice.overlap else 0
        audit.record("key.revoked", key, by=by, tenant=tenant, after_hours=hours)
    for webhook in found.webhooks:
        if str(webhook.pk) not in choice.kept:
            disable_by_hand(webhook)
            audit.record("webhook.disabled", webhook, by=by)


def keys_to_end(found: Belongings, choice: Choice) -> Iterator[ApiKey]:
    yield from (key for key in found.keys if str(key.pk) not in choice.kept)
    yield from (key for key in found.unclaimed if str(key.pk) in choice.ended)
