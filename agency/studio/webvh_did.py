"""The studio's page of an organization's did:webvh: make, read, rotate and end it."""

from typing import Any

from django import forms
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from agency.studio.form_tokens import OnceForm
from agency.studio.pages import MemberRequest, member_action, member_page
from credentials.ledgers.webvh import own_did
from credentials.models import WebvhDid
from tenants import audit
from tenants.models import Permission, Tenant

PAGE = "studio:webvh_did"


class HostForm(OnceForm):
    host = forms.CharField(
        label="Domain",
        required=False,
        max_length=253,
        help_text="One that leads here already, and that you keep for as long as "
        "anybody is to prove what you issue. Empty: the one of this installation.",
    )


class EndForm(OnceForm):
    deactivate = forms.BooleanField(
        label="Deactivate it: nothing that was issued by it can be proven or verified "
        "any more, by no wallet app",
        required=False,
    )


@member_page("GET")
def show_did(request: MemberRequest) -> HttpResponse:
    """For any member. With `check=1` its log is read as others read it."""
    row = WebvhDid.objects.filter(tenant=request.tenant).first()
    context: dict[str, Any] = {
        "row": row,
        "form": HostForm(),
        "may_change": request.membership.may(Permission.CONFIGURE),
        "may_end": request.membership.may(Permission.DELETE),
    }
    if row and request.GET.get("check"):
        context |= {"is_checked": True, "problem": own_did.find_outside_problem(row)}
    return render(request, "studio/webvh_did.html", context)


@member_action(PAGE, needs=Permission.CONFIGURE)
def make_did(request: MemberRequest) -> str:
    """The domain is asked over the network, before the transaction."""
    own_did.require_none(request.tenant)
    given = request.POST.get("host", "").strip()
    host = own_did.require_host(given, request.tenant.provider_id)
    create = audit.recorded(own_did.create, "did.created", request.tenant, by=request)
    return f"The DID is made: {create(request.tenant, host).did}"


@member_action(PAGE, needs=Permission.CONFIGURE, asks=True)
def rotate_keys(request: MemberRequest) -> HttpResponse | str:
    """After a question, which also says what a key that somebody else has takes."""
    row = get_live(request.tenant)
    if request.method != "POST":
        context = {"row": row, "form": OnceForm()}
        return render(request, "studio/rotate_webvh.html", context)
    is_compromised = "compromised" in request.POST
    rotate = audit.recorded(
        own_did.rotate,
        "did.keys_rotated",
        request.tenant,
        by=request,
        compromised=is_compromised,
    )
    rotate(request.tenant, is_compromised)
    if is_compromised:
        return "The former key signs nothing any more."
    return "The new key is listed. It signs in five minutes."


@member_action(PAGE, needs=Permission.DELETE, asks=True)
def end_did(request: MemberRequest) -> HttpResponse | str:
    """Freeze or deactivate it, after a question."""
    row = get_live(request.tenant)
    if request.method != "POST":
        context = {"row": row, "form": EndForm()}
        return render(request, "studio/end_webvh.html", context)
    deactivate = "deactivate" in request.POST
    end = audit.recorded(
        own_did.end, "did.ended", request.tenant, by=request, deactivated=deactivate
    )
    return f"The DID is {end(request.tenant, deactivate).state.lower()}."


def get_live(tenant: Tenant) -> WebvhDid:
    """The DID that may still publish, or 404."""
    return get_object_or_404(WebvhDid, tenant=tenant, next_key__isnull=False)
