"""The studio's pages of organizations: all, a new one, one, its deletion."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from agency.studio.curl import example_call
from agency.studio.forms import DeletionForm, OrganizationForm
from agency.studio.invitations import emails_of, invitation_of
from agency.studio.keys import CREATE_WALLET
from agency.studio.overview import overview_context
from agency.studio.pages import (
    MemberRequest,
    PersonRequest,
    list_memberships,
    may_create_organizations,
    member_page,
    person_page,
)
from agency.words.cards import Card, Entry
from core.errors import AgencyError, Conflict, Forbidden
from core.work import transactions
from credentials.models import WebvhDid
from tenants import audit
from tenants.lifecycle.deletion import end_deletion, key_that_asked, undo_deletion
from tenants.lifecycle.provisioning import (
    new_account,
    open_organization,
    remove_organization,
    require_host,
)
from tenants.models import Permission
from tenants.quotas import QuotaExceeded
from wallets.models import Wallet

EXAMPLE_CARD = Card(
    name="Member card",
    issuer="Riverside Library",
    background="#12355b",
    title=Entry("name", "Name", "Ada Lovelace"),
    face=[
        Entry("number", "Member number", "4711"),
        Entry("valid until", "Valid until", "31 Dec 2027"),
    ],
)


@require_safe
@never_cache
def show_home(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        return redirect("studio:organizations")
    example = example_call(*CREATE_WALLET)
    context = {
        "sign_up": settings.STUDIO_SIGN_UP,
        "example": example,
        "card": EXAMPLE_CARD,
    }
    return render(request, "studio/home.html", context)


@person_page("GET")
def show_organizations(request: PersonRequest) -> HttpResponse:
    """The organizations of a person. Who has one is led to it, unless `all` is asked."""
    memberships = list_memberships(request).order_by("tenant__name", "pk")
    if not memberships:
        has_invitation = invitation_of(request) is not None
        return redirect(
            "studio:invitation" if has_invitation else "studio:new_organization"
        )
    if len(memberships) == 1 and "all" not in request.GET:
        [only] = memberships
        if not only.tenant.deletion_due_at and invitation_of(request) is None:
            return redirect("studio:organization", only.tenant_id)
    context = {
        "memberships": memberships,
        "may_create": may_create_organizations(request.user),
    }
    return render(request, "studio/organizations.html", context)


@person_page("GET", "POST", once="studio:organizations")
def new_organization(request: PersonRequest) -> HttpResponse:
    """Create an organization, and lead to its page.

    It is stored with its wallet, its first owner and the audit entry in one
    transaction, without keys; a domain of its own is asked before. 403
    `sign_up_closed`; 409 `quota_exceeded` is shown above the form, and what is wrong
    with the domain there.
    """
    if not may_create_organizations(request.user):
        raise Forbidden(
            "sign_up_closed",
            "Here only staff let people create organizations. Ask them, or ask an "
            "owner to invite you to an organization.",
        )
    if settings.STUDIO_VERIFY_EMAIL and not emails_of(request.user):
        messages.warning(request, "Confirm your mail address first.")
        return redirect("studio:account_email")
    page = "studio/new_organization.html"
    form = OrganizationForm(request.POST or None)
    if not form.is_valid():
        return render(request, page, {"form": form})
    given = form.cleaned_data
    account = new_account(given["name"], request.user)
    try:
        host = require_host(given["network_id"], given["host"].strip(), account)
    except QuotaExceeded as error:
        form.add_error(None, error.message)
        return render(request, page, {"form": form}, status=error.status)
    except AgencyError as error:
        form.add_error("host", error.message)
        return render(request, page, {"form": form}, status=error.status)
    try:
        with transactions.atomic():
            tenant = open_organization(
                given["name"],
                owner=request.user,
                image_url=given["image_url"],
                network_id=given["network_id"],
                host=host,
                is_test=given["is_test"],
                visitor_wallets=given["visitor_wallets"],
                values_kept_days=given["values_kept_days"],
            )
            audit.record("organization.created", tenant, by=request)
    except Conflict as error:  # of a quota, or a domain that is taken
        form.add_error(None, error.message)
        return render(request, page, {"form": form}, status=error.status)
    return redirect("studio:organization", tenant.pk)


@member_page("GET")
def show_organization(request: MemberRequest) -> HttpResponse:
    """The overview of an organization, and what it is."""
    own = Wallet.of_organization(request.tenant)
    context = overview_context(request, own) | {"did": own.issuer_did}
    return render(request, "studio/organization.html", context)


@member_page("GET", "POST", needs=Permission.DELETE)
def delete_organization(request: MemberRequest) -> HttpResponse:
    """Delete an organization after its name is typed.

    One transaction records it, deletes its data key, and tells the peers if they are
    few; a worker removes the rows.
    """
    form = DeletionForm(request.POST or None, name=request.tenant.name)
    if not form.is_valid():
        live = WebvhDid.objects.filter(tenant=request.tenant, next_key__isnull=False)
        context = {"form": form, "has_webvh": live.exists()}
        return render(request, "studio/delete_organization.html", context)
    remove_organization(request.tenant, by=request)
    messages.success(request, f"{request.tenant} is deleted.")
    return redirect("studio:organizations")


@member_page("GET", "POST", needs=Permission.DELETE, until_deleted=True)
def show_deletion(request: MemberRequest) -> HttpResponse:
    """Undo the deletion that a key of the organization asked for, or end it now.

    Its end needs the typed name. 409 `wrong_state` if somebody else was faster.
    """
    tenant = request.tenant
    if not tenant.deletion_due_at:
        return redirect("studio:organization", tenant.pk)
    if "undo" in request.POST:
        undo_deletion(tenant, by=request, revokes_key="revokes_key" in request.POST)
        messages.success(
            request, f"{tenant} works again. Look whether all of its keys are yours."
        )
        return redirect("studio:organization", tenant.pk)
    form = DeletionForm(request.POST or None, name=tenant.name)
    if form.is_valid():
        end_deletion(tenant, by=request)
        messages.success(request, f"{tenant} is deleted.")
        return redirect("studio:organizations")
    context = {"form": form, "key": key_that_asked(tenant)}
    return render(request, "studio/deletion.html", context)
