"""The studio's page of trust: authorities that are trusted, and own certificates."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, render

from agency.studio.form_tokens import OnceForm
from agency.studio.pages import (
    MemberRequest,
    lead_back,
    member_action,
    member_page,
    refusals_above,
)
from tenants import audit
from tenants.models import Permission
from wallets.jose import certificates
from wallets.jose.certificates import MAX_PEM
from wallets.models import SigningKey, TrustAnchor, issuer_url

PAGE = "studio:trust"
PEM_HELP = "The text between BEGIN and END CERTIFICATE, with these lines."


class AnchorForm(OnceForm):
    name = forms.CharField(
        label="Name", max_length=100, help_text="As your policies name the authority."
    )
    certificate = forms.CharField(
        label="Its certificate in PEM",
        max_length=MAX_PEM,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
        help_text=PEM_HELP,
    )


class ChainForm(OnceForm):
    certificates = forms.CharField(
        label="Certificates in PEM",
        max_length=MAX_PEM,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
        help_text="That of the key first, then those of the authorities between, each "
        "signed by the next.",
    )


@member_page("GET")
def show_trust(request: MemberRequest) -> HttpResponse:
    """For any member. The keys that are not made yet are made when they are needed."""
    keys = list(SigningKey.objects.filter(tenant=request.tenant).order_by("purpose"))
    anchors = TrustAnchor.objects.filter(tenant=request.tenant).order_by("-pk")
    context = {
        "issuer": issuer_url(request.tenant.pk),
        "keys": [(key, describe_chain(key.x5c)) for key in keys],
        "is_own": not keys or any(not key.is_uploaded for key in keys),
        "purposes": SigningKey.Purpose.values,
        "anchors": anchors[: TrustAnchor.MAX_OF_TENANT],
        "form": ChainForm(),
        "may_change": request.membership.may(Permission.CONFIGURE),
    }
    return render(request, "studio/trust.html", context)


@member_page("GET", "POST", needs=Permission.CONFIGURE, once=PAGE)
def new_anchor(request: MemberRequest) -> HttpResponse:
    """First it shows what the certificate says, then it is trusted by another button.

    400 `invalid_certificate` and 409 of TrustAnchor.create() are shown above the form.
    """
    form = AnchorForm(request.POST or None)
    context: dict[str, Any] = {"form": form}
    if form.is_valid():
        name, pem = form.cleaned_data["name"], form.cleaned_data["certificate"]
        with refusals_above(form):
            if request.POST.get("action") == "trust":
                create = audit.recorded(
                    TrustAnchor.create, "trust_anchor.created", by=request
                )
                create(request.tenant, name, pem)
                messages.success(request, f"{name} is trusted.")
                return lead_back(PAGE, {"tenant_id": request.tenant.pk})
            found = TrustAnchor.read(pem)
            context["shown"] = describe(found)
    return render(request, "studio/new_trust_anchor.html", context)


@member_action(PAGE, needs=Permission.CONFIGURE, asks=True, may_be_refused=False)
def remove_anchor(request: MemberRequest, anchor_id: UUID) -> HttpResponse | str:
    """Trust an authority no longer, after a question."""
    rows = TrustAnchor.objects.filter(tenant=request.tenant)
    anchor = get_object_or_404(rows, pk=anchor_id)
    if request.method != "POST":
        context = {"anchor": anchor, "form": OnceForm()}
        return render(request, "studio/remove_trust_anchor.html", context)
    audit.recorded(anchor.delete, "trust_anchor.deleted", anchor, by=request)()
    return f"{anchor.name} is not trusted any more."


@member_page("GET", needs=Permission.CONFIGURE)
def download_request(request: MemberRequest) -> HttpResponse:
    """The request for the certificate of a key, as a file."""
    key = key_asked_for(request)
    name = f"{key.purpose}.csr"
    return HttpResponse(
        key.make_request(),
        content_type="application/pkcs10",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@member_action(PAGE, needs=Permission.CONFIGURE)
def upload_certificates(request: MemberRequest) -> str:
    pem = request.POST.get("certificates", "")
    upload = audit.recorded(SigningKey.upload, "certificates.uploaded", by=request)
    key = upload(request.tenant, pem)
    return f"The key of {key.purpose} uses these certificates from now on."


@member_action(PAGE, needs=Permission.CONFIGURE, asks=True)
def use_own(request: MemberRequest) -> HttpResponse | str:
    """Go back to the installation's own authority, after a question."""
    key = key_asked_for(request)
    if request.method != "POST":
        context = {"key": key, "form": OnceForm()}
        return render(request, "studio/use_own_certificates.html", context)
    if key.is_uploaded:
        audit.recorded(key.certify, "certificates.removed", key, by=request)()
    return f"The key of {key.purpose} uses certificates of this installation."


def key_asked_for(request: MemberRequest) -> SigningKey:
    """The key of the `purpose` in the query, else that of credentials."""
    purpose = request.GET.get("purpose", SigningKey.Purpose.CREDENTIALS)
    if purpose not in SigningKey.Purpose.values:
        raise Http404
    return SigningKey.of(request.tenant, SigningKey.Purpose(purpose))


def describe_chain(x5c: list[str]) -> list[dict[str, Any]]:
    return [describe(one) for one in certificates.read_chain(x5c)] if x5c else []


def describe(found: certificates.Certificate) -> dict[str, Any]:
    """What a certificate says, for people."""
    return {
        "subject": found.subject.rfc4514_string(),
        "issuer": found.issuer.rfc4514_string(),
        "begins_at": found.not_valid_before_utc,
        "ends_at": found.not_valid_after_utc,
        "fingerprint": certificates.fingerprint_of(found),
    }
