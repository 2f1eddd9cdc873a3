"""The studio's pages of members: roles, invitations, leaving."""

from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import Case, IntegerField, Value, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from agency.studio.form_tokens import OnceForm
from agency.studio.invitations import deliver_invitation
from agency.studio.pages import (
    MemberRequest,
    lock_organization,
    member_action,
    member_page,
)
from agency.studio.required_factors import require_second_factor
from core.api.openapi.operation import SUMMARIES
from core.errors import AgencyError, Invalid
from core.valkey import rate_limits
from core.work import transactions
from tenants import members, vault
from tenants.lifecycle import departures
from tenants.lifecycle.provisioning import change_organization
from tenants.models import Invitation, Membership, Permission, Role, Scope, Tenant
from tenants.models.names import read_confirmed

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


@member_page("GET")
def show_members(request: MemberRequest) -> HttpResponse:
    return render_members(request)


def render_members(
    request: MemberRequest, form: InviteForm | None = None
) -> HttpResponse:
    rank = Case(
        *(When(role=role, then=Value(place)) for place, role in enumerate(Role)),
        output_field=IntegerField(),
    )
    tenant = request.tenant
    may_change = request.membership.may(Permission.PEOPLE)
    invitations = tenant.invitations.select_related("invited_by").order_by("email")
    members = tenant.memberships.select_related("user").order_by(rank, "pk")
    read_confirmed(
        [member.user for member in members] + [one.invited_by for one in invitations]
    )
    context = {
        "members": members,
        "invitations": invitations if may_change else [],
        "may_change": may_change,
        "form": form or InviteForm(),
        "roles": Role.choices,
        "table": [
            (
                permission.label,
                [
                    (role.label, Membership(role=role, tenant=tenant).may(permission))
                    for role in Role
                ],
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


@member_page("POST", needs=Permission.PEOPLE, once="studio:members")
def invite_member(request: MemberRequest) -> HttpResponse:
    """Store an invitation, and mail its link after the commit.

    429 `too_many_requests` and 409 `already_member`, `already_invited`, `member_limit`
    are shown at the field.
    """
    form = InviteForm(request.POST)
    if not form.is_valid():
        return render_members(request, form)
    given = form.cleaned_data
    try:
        limit_mails(request.tenant, given["email"])
        with transactions.atomic():
            lock_organization(request, Permission.PEOPLE)
            invitation, token = members.invite_person(
                request.tenant, given["email"], given["role"], by=request
            )
    except AgencyError as error:
        form.add_error("email", error.message)
        return render_members(request, form)
    return deliver_invitation(request, invitation, token)


def get_invitation(tenant: Tenant, invitation_id: UUID) -> Invitation:
    rows = tenant.invitations.select_related("tenant", "invited_by")
    return get_object_or_404(rows, pk=invitation_id)


@member_action("studio:members", needs=Permission.PEOPLE)
def resend_invitation(request: MemberRequest, invitation_id: UUID) -> HttpResponse:
    """Mail a new link of an invitation, after the commit.

    Its former link is unknown then.
    """
    invitation = get_invitation(request.tenant, invitation_id)
    limit_mails(request.tenant, invitation.email)
    with transactions.atomic():
        lock_organization(request, Permission.PEOPLE)
        token = members.resend_invitation(invitation, by=request)
    return deliver_invitation(request, invitation, token)


def limit_mails(tenant: Tenant, email: str) -> None:
    """Raise 429 `too_many_requests` if too many invitations were sent."""
    take = rate_limits.take_token
    organization = str(tenant.pk)
    day = 24 * 60  # in minutes
    take("invitations", organization, INVITATIONS_PER_MINUTE)
    take("invitations_of_day", organization, INVITATIONS_PER_DAY, minutes=day)
    address = vault.keyed_digest(email.lower()).hex()
    take("invitations_to_address", address, INVITATIONS_PER_ADDRESS, minutes=day)


@member_action("studio:members", needs=Permission.PEOPLE, once="")
def withdraw_invitation(request: MemberRequest, invitation_id: UUID) -> str:
    invitation = get_invitation(request.tenant, invitation_id)
    with transactions.atomic():
        lock_organization(request, Permission.PEOPLE)
        members.withdraw_invitation(invitation, by=request)
    return f"The invitation of {invitation.email} is withdrawn."


def get_member(tenant: Tenant, member_id: UUID) -> Membership:
    rows = tenant.memberships.select_related("user", "tenant")
    return get_object_or_404(rows, pk=member_id)


@member_action("studio:members", needs=Permission.PEOPLE, once="")
def change_role(request: MemberRequest, member_id: UUID) -> HttpResponse | str:
    """Give a member another role. 409 `last_owner` is shown on the page.

    Who may not invite any more loses the invitations that they sent and that are open.
    If there are keys or webhooks that they made and could make no longer, a question
    comes first.
    """
    member = get_member(request.tenant, member_id)
    form = RoleForm(request.POST)
    if not form.is_valid():
        raise Invalid("invalid_request", "Choose one of the roles.")
    role = Role(form.cleaned_data["role"])
    found = departures.find_belongings(member, role)
    if not found.are_none and "confirmed" not in request.POST:
        context = {"member": member, "role": role, "belongings": found}
        return render(request, "studio/change_role.html", context)
    with transactions.atomic():
        lock_organization(request, Permission.PEOPLE)
        departures.change_role(member, role, read_choice(request), by=request)
    return f"{member.name} has the role {role.label} now."


def read_choice(request: HttpRequest) -> departures.Choice:
    """What the form says about keys and webhooks that somebody made."""
    return departures.Choice(
        kept=frozenset(request.POST.getlist("keep")),
        ended=frozenset(request.POST.getlist("end")),
        overlap=request.POST.get("overlap") == "yes",
    )


@member_action("studio:members", needs=Permission.PEOPLE, once="", asks=True)
def remove_member(request: MemberRequest, member_id: UUID) -> HttpResponse | str:
    """Remove a member after a question, and the invitations that they sent.

    Keys and webhooks that they made end, but for those that are kept. 409 `last_owner`
    is shown on the page of members.
    """
    member = get_member(request.tenant, member_id)
    if request.method != "POST":
        found = departures.find_belongings(member, None)
        context = {"belongings": found, "member": member}
        return render(request, "studio/remove_member.html", context)
    with transactions.atomic():
        lock_organization(request, Permission.PEOPLE)
        departures.remove_member(member, read_choice(request), by=request)
    return f"{member.name} is no longer a member."


@member_action("studio:members", needs=Permission.READ, once="", asks=True)
def leave_organization(request: MemberRequest) -> HttpResponse:
    """End the person's own membership after a question. 409 `last_owner` is shown.

    Keys and webhooks that they made end: only others can say that one is kept, and
    have it by rotating it before.
    """
    if request.method != "POST":
        found = departures.find_belongings(request.membership, None)
        return render(request, "studio/leave.html", {"belongings": found})
    choice = departures.Choice(overlap=read_choice(request).overlap)
    departures.remove_member(request.membership, choice, by=request)
    messages.success(request, f"You left {request.tenant}.")
    return redirect("studio:organizations")


@member_action("studio:members", needs=Permission.PEOPLE, once="", may_be_refused=False)
def change_requirement(request: MemberRequest) -> str:
    """Require a second factor of all members, or no longer.

    Who requires it needs one, and is led to its page without: else this page would
    refuse them next. The change is recorded in its transaction, which locks the
    organization.
    """
    is_required = request.POST.get("required") == "yes"
    if is_required:
        require_second_factor(
            request, "Set up a second factor yourself before you require it of others."
        )
    change_organization(
        request.tenant, {"requires_second_factor": is_required}, by=request
    )
    if is_required:
        return "Members need a second factor from now on."
    return "Members need no second factor any more."
