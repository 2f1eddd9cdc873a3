"""Invite people to an organization, change their roles, and remove them.

Each function locks the organization's row, so that two at once leave an owner.
"""

import secrets
from collections.abc import Iterable
from contextlib import suppress

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone

from core.errors import Conflict, Invalid, NotFound
from core.work import transactions
from core.work.retention import BatchBudget, days_ago, delete_in_batches
from tenants import audit, vault
from tenants.models import Invitation, Membership, Permission, Role, Tenant
from tenants.models.names import has_confirmed_email, read_confirmed
from tenants.models.people import INVITATION_LIFETIME

MAX_MEMBERS = 200
MAX_INVITATIONS = 50
EXPIRED_DAYS = 30  # for which an expired invitation can be sent again


@transactions.atomic()
def invite_person(
    tenant: Tenant, email: str, role: str, *, by: HttpRequest
) -> tuple[Invitation, str]:
    """Create an invitation. Return it and the token of its link.

    Only a digest of the token is stored. The caller sends the mail or, without
    EMAIL_URL, shows the link. by: the request of the person who invites. Raises
    Conflict `already_member`, `already_invited`, `member_limit` (of members or of open
    invitations).
    """
    tenant.lock_row()
    email = email.strip().lower()
    # Others who give this address as theirs must not keep its owner out.
    confirmed = EmailAddress.objects.filter(email=email, verified=True)
    named = tenant.memberships.filter(user__email__iexact=email)
    if named.filter(user__in=confirmed.values("user")).exists():
        raise Conflict("already_member", f"{email} is a member already.")
    if tenant.invitations.filter(email=email).exists():
        raise Conflict(
            "already_invited",
            f"{email} is invited already. Send that invitation again.",
        )
    if tenant.invitations.count() >= MAX_INVITATIONS:
        raise Conflict(
            "member_limit",
            f"{MAX_INVITATIONS} invitations are open, which is the most. Withdraw one.",
        )
    require_room_for_member(tenant)
    invitation = Invitation(tenant=tenant, email=email, role=role)
    invitation.invited_by = audit.person_of(by)
    token = renew_token(invitation)
    invitation.save(force_insert=True)
    audit.record("member.invited", invitation, by=by)
    return invitation, token


@transactions.atomic()
def resend_invitation(invitation: Invitation, *, by: audit.Who) -> str:
    """Give the invitation a new token, which is returned, and another 72 hours.

    The former link ends.
    """
    invitation.tenant.lock_row()
    row = lock_invitation(invitation)
    token = renew_token(row)
    row.save(update_fields=["digest", "is_mailed", "expires_at", "updated_at"])
    audit.record("invitation.resent", row, by=by)
    return token


@transactions.atomic()
def withdraw_invitation(invitation: Invitation, *, by: audit.Who) -> None:
    invitation.tenant.lock_row()
    row = lock_invitation(invitation)
    audit.record("invitation.withdrawn", row, by=by)
    row.delete()


def find_invitation(digest: bytes) -> Invitation | None:
    """Return the invitation whose token has this digest, if it has not expired."""
    found = Invitation.objects.select_related("tenant", "invited_by")
    return found.filter(digest=digest, expires_at__gt=timezone.now()).first()


@transactions.atomic()
def accept_invitation(
    digest: bytes, user: User, *, emails: set[str], by: audit.Who
) -> Tenant:
    """Make the person a member, and use the invitation up. Return the organization.

    digest: vault.keyed_digest() of the token, which proves that the link was opened:
    if it was mailed, the address is confirmed. emails: the mail addresses that are the
    person's own, in lower case. A member keeps the present role. Raises NotFound
    `invitation_ended`, Invalid `wrong_address`, Conflict `member_limit`,
    `address_in_use`, OrganizationFrozen.
    """
    found = find_invitation(digest)
    if found:
        with suppress(NotFound):  # then its invitations are gone too
            found.tenant.lock_row()
        # Another request may have used it while this one waited for the lock.
        found = find_invitation(digest)
    if not found:
        raise NotFound(
            "invitation_ended",
            "This invitation has ended: it was used or withdrawn, or it expired. Ask "
            "for another one.",
        )
    if found.email not in emails:
        raise Invalid(
            "wrong_address",
            f"This invitation is for {found.email}. Sign in with that address.",
        )
    found.tenant.require_thawed()
    if found.is_mailed:
        confirm_address(user, found.email, by=by)
    if not found.tenant.memberships.filter(user=user).exists():
        require_room_for_member(found.tenant)
        require_own_address(found.tenant, user)
        member = Membership.objects.create(
            tenant=found.tenant, user=user, role=found.role
        )
        audit.record("member.joined", member, by=by)
    else:
        audit.record("invitation.used", found, by=by)
    found.delete()
    return found.tenant


@transactions.atomic()
def add_member(
    tenant: Tenant, user: User, role: str, *, by: audit.Who, reason: str = ""
) -> Membership:
    """Make a person a member without an invitation. For staff.

    Raises Conflict `already_member`, `member_limit`, `address_in_use`.
    """
    tenant.lock_row()
    if tenant.memberships.filter(user=user).exists():
        raise Conflict("already_member", f"{user} is a member already.")
    require_room_for_member(tenant)
    require_own_address(tenant, user)
    member = Membership.objects.create(tenant=tenant, user=user, role=role)
    audit.record("member.added", member, by=by, reason=reason)
    return member


@transactions.atomic()
def change_role(
    membership: Membership, role: str, *, by: audit.Who, reason: str = ""
) -> None:
    """Give a person another role. The same role again changes nothing.

    The open invitations of a person who may not invite any more are withdrawn.
    """
    membership.tenant.lock_row()
    row = lock_membership(membership)
    if row.role == role:
        return
    if role != Role.OWNER:
        require_other_owner(row)
    former = row.role
    Membership.objects.filter(pk=row.pk).update(role=role, updated_at=timezone.now())
    audit.record("member.role_changed", row, by=by, reason=reason, role=[former, role])
    # Not saved: it only says what the new role may do.
    if not Membership(role=role).may(Permission.PEOPLE):
        withdraw_invitations_of(row, by=by)


@transactions.atomic()
def remove_member(membership: Membership, *, by: audit.Who, reason: str = "") -> None:
    """Remove a person, who may be the one who asks, and that person's invitations."""
    membership.tenant.lock_row()
    row = lock_membership(membership)
    require_other_owner(row)
    user = getattr(by, "user", None)
    action = "member.left" if row.user == user else "member.removed"
    audit.record(action, row, by=by, reason=reason)
    withdraw_invitations_of(row, by=by)
    row.delete()


def withdraw_invitations_of(membership: Membership, *, by: audit.Who) -> None:
    """Withdraw the open invitations by somebody who may invite no longer.

    Else the person could come back by one that went to an address of theirs.
    """
    rows = membership.tenant.invitations.filter(invited_by=membership.user)
    for invitation in rows.select_for_update():
        audit.record("invitation.withdrawn", invitation, by=by)
        invitation.delete()


def lock_membership(membership: Membership) -> Membership:
    rows = Membership.objects.select_related("user", "tenant")
    row = rows.select_for_update(of=["self"]).filter(pk=membership.pk).first()
    if not row:
        raise NotFound("not_found", "This person is not a member any more.")
    return row


def lock_invitation(invitation: Invitation) -> Invitation:
    rows = Invitation.objects.select_related("tenant")
    row = rows.select_for_update(of=["self"]).filter(pk=invitation.pk).first()
    if not row:
        raise NotFound(
            "invitation_ended", "This invitation was used or withdrawn meanwhile."
        )
    return row


def require_other_owner(membership: Membership) -> None:
    """Raise Conflict `last_owner` if this is the only person who owns it."""
    if membership.role != Role.OWNER:
        return
    owners = membership.tenant.memberships.filter(role=Role.OWNER, user__is_active=True)
    if not owners.exclude(pk=membership.pk).exists():
        raise Conflict(
            "last_owner",
            "An organization needs an owner. Make somebody else an owner first.",
        )


def require_room_for_member(tenant: Tenant) -> None:
    if tenant.memberships.count() >= MAX_MEMBERS:
        raise Conflict(
            "member_limit",
            f"The organization has {MAX_MEMBERS} members, which is the most.",
        )


def confirm_address(user: User, email: str, *, by: audit.Who) -> None:
    """Confirm an address of the person, who has opened a link that was mailed to it."""
    row, _ = EmailAddress.objects.get_or_create(user=user, email=email)
    if row.verified:
        return
    try:
        with transactions.atomic():
            is_confirmed = row.set_verified()
    except IntegrityError:  # another account has just confirmed it
        is_confirmed = False
    if not is_confirmed:
        raise Conflict(
            "address_in_use",
            f"Another account has confirmed {email}. Sign in with that one.",
        )
    read_confirmed([user])
    audit.record("person.email_confirmed", user, by=by, address=email)


def require_own_address(tenant: Tenant, user: User) -> None:
    """Raise Conflict `address_in_use` if one of the person's addresses is unconfirmed
    and a member's: any of them can be made the one that is shown.
    """
    unconfirmed = EmailAddress.objects.filter(user=user, verified=False)
    given = set(unconfirmed.values_list("email", flat=True))
    if not has_confirmed_email(user):
        given.add(user.email)
    for email in sorted(given):
        if is_used_in([tenant], email, but=user):
            raise Conflict(
                "address_in_use",
                f"Another member of the organization uses {email}, which is not "
                "confirmed as yours.",
            )


def is_used_in(tenants: Iterable[Tenant], email: str, *, but: User) -> bool:
    """Whether another member of these organizations has this address, confirmed or not.

    but: the person who is not meant.
    """
    if not email:
        return False
    is_theirs = Q(user__email__iexact=email) | Q(
        user__emailaddress__email__iexact=email
    )
    others = Membership.objects.filter(is_theirs, tenant__in=tenants)
    return others.exclude(user=but).exists()


def renew_token(invitation: Invitation) -> str:
    """Set a new token and the time until which it works. Return the token."""
    token = secrets.token_urlsafe(32)
    now = timezone.now()
    invitation.is_mailed = bool(settings.EMAIL_URL)
    invitation.digest = vault.keyed_digest(token)
    invitation.expires_at = now + INVITATION_LIFETIME
    invitation.updated_at = now
    return token


def delete_expired_invitations() -> int:
    old = Invitation.objects.filter(expires_at__lt=days_ago(EXPIRED_DAYS))
    rows = old.only("pk", "expires_at")
    return delete_in_batches(rows, BatchBudget(), by="expires_at")
