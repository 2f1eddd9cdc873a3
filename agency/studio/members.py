"""The studio's pages of members: roles, invitations, leaving."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import Case, IntegerField, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from agency.studio.form_tokens import OnceForm, once_per_form
from agency.studio.invitations import deliver_invitation
from agency.studio.pages import get_membership, lock_membership, studio_page
from agency.studio.required_factors import require_second_factor
from core.api.openapi.operation import SUMMARIES
from core.errors import AgencyError
from core.valkey import rate_limits
from core.work import transactions
from tenants import members, vault
from tenants.lifecycle import departures
from tenants.lifecycle.provisioning import change_organization
from tenants.models import Invitation, Membership, Permission, Role, Scope
from tenants.models.names import read_confirmed
from tenants.models.people import ROLES_WITH

# Each invitation is a mail to an address that somebody typed. Of one organization:
INVITATIONS_PER_MINUTE = 10
INVITATIONS_PER_DAY = 100
# To one address, of all organizations:
INVITATIONS_PER_ADDRESS = 5  # a day


class InviteForm(OnceForm):
    email = forms.EmailField(label="Mail address", max_length=254)
    role = forms.ChoiceField(choices=Role.choices, initial=Role.VIEWER)


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Role.choices)


@studio_page("GET", "HEAD")
def show_members(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    return render_members(request, get_membership(request, tenant_id))


def render_members(
    request: HttpRequest, membership: Membership, form: InviteForm | None = None
) -> HttpResponse:
    tenant = membership.tenant
    rank = Case(
        *(When(role=role, then=Value(place)) for place, role in enumerate(Role)),
        output_field=IntegerField(),
    )
    may_change = membership.may(Permission.PEOPLE)
    invitations = tenant.invitations.select_related("invited_by").order_by("email")
    members = tenant.memberships.select_related("user").order_by(rank, "pk")
    read_confirmed(
        [member.user for member in members] + [one.invited_by for one in invitations]
    )
    context = {
        "membership": membership,
        "tenant": tenant,
        "members": members,
        "invitations": invitations if may_change else [],
        "may_change": may_change,
        "form": form or InviteForm(),
        "roles": Role.choices,
        "table": [
            (
                permission.label,
                [(role.label, role in ROLES_WITH[permission]) for role in Role],
            )
            for permission in Permission
        ],
        "scopes": [
            (
                scope,
                [
                    role.label
                    for role in Role
                    if Membership(role=role).may_give({scope})
                ],
                sorted(SUMMARIES[scope]),
            )
            for scope in Scope
        ],
    }
    return render(request, "studio/members.html", context)


@studio_page("POST")
@once_per_form(back="studio:members")
def invite_member(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Store an invitation, and mail its link after the commit.

    429 `too_many_requests` and 409 `already_member`, `already_invited`, `member_limit`
    are shown at the field.
    """
    membership = get_membership(request, tenant_id, Permission.PEOPLE)
    form = InviteForm(request.POST)
    if not form.is_valid():
        return render_members(request, membership, form)
    given = form.cleaned_data
    try:
        limit_mails(tenant_id, given["email"])
        with transactions.atomic():
            lock_membership(request, tenant_id, Permission.PEOPLE)
            invitation, token = members.invite_person(
                membership.tenant, given["email"], given["role"], by=request
            )
    except AgencyError as error:
        form.add_error("email", error.message)
        return render_members(request, membership, form)
    return deliver_invitation(request, invitation, token)


def get_invitation(membership: Membership, invitation_id: UUID) -> Invitation:
    rows = membership.tenant.invitations.select_related("tenant", "invited_by")
    return get_object_or_404(rows, pk=invitation_id)


@studio_page("POST")
@once_per_form(back="studio:members")
def resend_invitation(
    request: HttpRequest, tenant_id: UUID, invitation_id: UUID
) -> HttpResponse:
    """Mail a new link of an invitation, after the commit.

    Its former link is unknown then.
    """
    membership = get_membership(request, tenant_id, Permission.PEOPLE)
    invitation = get_invitation(membership, invitation_id)
    try:
        limit_mails(tenant_id, invitation.email)
        with transactions.atomic():
            lock_membership(request, tenant_id, Permission.PEOPLE)
            token = members.resend_invitation(invitation, by=request)
    except AgencyError as error:
        messages.error(request, error.message)
        return redirect("studio:members", tenant_id=tenant_id)
    return deliver_invitation(request, invitation, token)


def limit_mails(tenant_id: UUID, email: str) -> None:
    """Raise 429 `too_many_requests` if too many invitations were sent."""
    take = rate_limits.take_token
    organization = str(tenant_id)
    day = 24 * 60  # in minutes
    take("invitations", organization, INVITATIONS_PER_MINUTE)
    take("invitations_of_day", organization, INVITATIONS_PER_DAY, minutes=day)
    address = vault.keyed_digest(email.lower()).hex()
    take("invitations_to_address", address, INVITATIONS_PER_ADDRESS, minutes=day)


def change_and_return(
    request: HttpRequest, tenant_id: UUID, change: Callable[[], Any], done: str
) -> HttpResponse:
    """Run a change. Show the message `done`, or the error, on the page of members.

    change: of tenants/members.py, which records the change in its transaction. It is
    made in the one whose lock shows that the person may still do it.
    """
    try:
        with transactions.atomic():
            lock_membership(request, tenant_id, Permission.PEOPLE)
            change()
        messages.success(request, done)
    except AgencyError as error:
        messages.error(request, error.message)
    return redirect("studio:members", tenant_id=tenant_id)


@studio_page("POST")
def withdraw_invitation(
    request: HttpRequest, tenant_id: UUID, invitation_id: UUID
) -> HttpResponse:
    membership = get_membership(request, tenant_id, Permission.PEOPLE)
    invitation = get_invitation(membership, invitation_id)
    return change_and_return(
        request,
        tenant_id,
        lambda: members.withdraw_invitation(invitation, by=request),
        f"The invitation of {invitation.email} is withdrawn.",
    )


def get_member(membership: Membership, member_id: UUID) -> Membership:
    rows = membership.tenant.memberships.select_related("user", "tenant")
    return get_object_or_404(rows, pk=member_id)


@studio_page("POST")
def change_role(request: HttpRequest, tenant_id: UUID, member_id: UUID) -> HttpResponse:
    """Give a member another role. 409 `last_owner` is shown on the page.

    Who may not invite any more loses the invitations that they sent and that are open.
    If there are keys or webhooks that they made and could make no longer, a question
    comes first.
    """
    membership = get_membership(request, tenant_id, Permission.PEOPLE)
    member = get_member(membership, member_id)
    form = RoleForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Choose one of the roles.")
        return redirect("studio:members", tenant_id=tenant_id)
    role = Role(form.cleaned_data["role"])
    found = departures.find_belongings(member, role)
    if not found.are_none and "confirmed" not in request.POST:
        context = {"tenant": membership.tenant, "member": member, "role": role}
        return render(
            request, "studio/change_role.html", context | {"belongings": found}
        )
    choice = read_choice(request)
    return change_and_return(
        request,
        tenant_id,
        lambda: departures.change_role(member, role, choice, by=request),
        f"{member.name} has the role {role.label} now.",
    )


def read_choice(request: HttpRequest) -> departures.Choice:
    """What the form says about keys and webhooks that somebody made."""
    return departures.Choice(
        kept=frozenset(request.POST.getlist("keep")),
        ended=frozenset(request.POST.getlist("end")),
        overlap=request.POST.get("overlap") == "yes",
    )


@studio_page("GET", "HEAD", "POST")
def remove_member(
    request: HttpRequest, tenant_id: UUID, member_id: UUID
) -> HttpResponse:
    """Remove a member after a question, and the invitations that they sent.

    Keys and webhooks that they made end, but for those that are kept. 409 `last_owner`
    is shown on the page of members.
    """
    membership = get_membership(request, tenant_id, Permission.PEOPLE)
    member = get_member(membership, member_id)
    if request.method != "POST":
        context = {"membership": membership, "tenant": membership.tenant}
        context |= {"belongings": departures.find_belongings(member, None)}
        return render(
            request, "studio/remove_member.html", context | {"member": member}
        )
    choice = read_choice(request)
    return change_and_return(
        request,
        tenant_id,
        lambda: departures.remove_member(member, choice, by=request),
        f"{member.name} is no longer a member.",
    )


@studio_page("GET", "HEAD", "POST")
def leave_organization(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """End the person's own membership after a question. 409 `last_owner` is shown.

    Keys and webhooks that they made end: only others can say that one is kept, and
    have it by rotating it before.
    """
    membership = get_membership(request, tenant_id)
    if request.method != "POST":
        context = {"membership": membership, "tenant": membership.tenant}
        context |= {"belongings": departures.find_belongings(membership, None)}
        return render(request, "studio/leave.html", context)
    choice = departures.Choice(overlap=read_choice(request).overlap)
    try:
        departures.remove_member(membership, choice, by=request)
    except AgencyError as error:
        messages.error(request, error.message)
        return redirect("studio:members", tenant_id=tenant_id)
    messages.success(request, f"You left {membership.tenant}.")
    return redirect("studio:organizations")


@studio_page("POST")
def change_requirement(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Require a second factor of all members, or no longer.

    Who requires it needs one, and is led to its page without: else this page would
    refuse them next. The change is recorded in its transaction, which locks the
    organization.
    """
    membership = get_membership(request, tenant_id, Permission.PEOPLE)
    is_required = request.POST.get("required") == "yes"
    if is_required:
        require_second_factor(
            request, "Set up a second factor yourself before you require it of others."
        )
    changes = {"requires_second_factor": is_required}
    change_organization(membership.tenant, changes, by=request)
    messages.success(
        request,
        "Members need a second factor from now on."
        if is_required
        else "Members need no second factor any more.",
    )
    return redirect("studio:members", tenant_id=tenant_id)
