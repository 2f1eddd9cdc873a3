"""The studio's pages of kiosks. A kiosk's link is shown in one response only."""

from functools import partial
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from agency.studio.api_forms import read_parameters
from agency.studio.form_tokens import OnceForm, once_per_form
from agency.studio.pages import get_membership, studio_page
from agency.studio.policies import get_policy, render_choice
from connections.api import qr_codes
from core.api.views import parse_uuid
from core.errors import AgencyError
from tenants import audit
from tenants.models import Permission
from verifications.api.kiosks import KioskParameters
from verifications.kiosks import (
    MAX_KIOSKS,
    MAX_SECONDS,
    MIN_SECONDS,
    create_kiosk,
    revoke_kiosk,
)
from verifications.models import Kiosk, VerificationPolicy


class KioskForm(OnceForm):
    name = forms.CharField(
        label="Name", max_length=100, help_text="Where it stands, as “Front desk”."
    )
    seconds = forms.IntegerField(
        label="Seconds for which an answer is shown",
        initial=8,
        min_value=MIN_SECONDS,
        max_value=MAX_SECONDS,
    )
    shown_items = forms.MultipleChoiceField(
        label="Values on the screen",
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(
        self, data: Any = None, *, policy: VerificationPolicy, **options: Any
    ) -> None:
        super().__init__(data, **options)
        self.policy = policy
        items = policy.unsealed_policy().attributes
        self.fields["shown_items"].choices = [
            (item.policy_name, ", ".join(item.attribute_names)) for item in items
        ]

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        body = {
            "name": cleaned.get("name"),
            "policyId": str(self.policy.pk),
            "seconds": cleaned.get("seconds"),
            "shownItems": cleaned.get("shown_items"),
        }
        if not self.errors:
            self.body = read_parameters(self, KioskParameters, body)
        return cleaned


@studio_page("GET", "HEAD")
def show_kiosks(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """The kiosks, newest first, for any member. Revoked ones are deleted.

    Without their links: of each only a digest is stored.
    """
    membership = get_membership(request, tenant_id)
    rows = Kiosk.objects.filter(tenant=membership.tenant).order_by("-pk")
    kiosks = rows.select_related("policy").defer("policy__body")
    context = {
        "membership": membership,
        "tenant": membership.tenant,
        "kiosks": kiosks[:MAX_KIOSKS],
        "may_change": membership.may(Permission.OPERATE),
    }
    return render(request, "studio/kiosks.html", context)


@studio_page("GET", "HEAD", "POST")
@once_per_form(back="studio:kiosks")
def new_kiosk(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Choose a policy, then what the screen shows. The answer has the link.

    It is stored and recorded in one transaction, which locks the organization. 400
    `unknown_item` and 409 `too_many_kiosks` are shown above the form.
    """
    membership = get_membership(request, tenant_id, Permission.OPERATE)
    tenant = membership.tenant
    policy_id = parse_uuid(request.GET.get("policy", ""))
    if not policy_id:
        return render_choice(request, membership, title="New kiosk", back="kiosks")
    policy = get_policy(tenant, policy_id)
    form = KioskForm(request.POST or None, policy=policy)
    context = {
        "membership": membership,
        "tenant": tenant,
        "policy": policy,
        "form": form,
    }
    if not form.is_valid():
        return render(request, "studio/new_kiosk.html", context)
    create = partial(
        create_kiosk,
        tenant,
        policy,
        name=form.body["name"],
        seconds=form.body["seconds"],
        shown_items=form.body["shownItems"],
    )
    try:
        kiosk = audit.recorded(create, "kiosk.created", by=request)()
    except AgencyError as error:
        form.add_error(None, error.message)
        return render(request, "studio/new_kiosk.html", context)
    context |= {"kiosk": kiosk, "picture": qr_codes.data_address(kiosk.url)}
    return render(request, "studio/kiosk_created.html", context)


@studio_page("GET", "HEAD", "POST")
def remove_kiosk(request: HttpRequest, tenant_id: UUID, kiosk_id: UUID) -> HttpResponse:
    """Revoke a kiosk after a question, in one transaction with the audit entry.

    A request on its screen that nobody has answered is removed too.
    """
    membership = get_membership(request, tenant_id, Permission.OPERATE)
    tenant = membership.tenant
    kiosk = get_object_or_404(Kiosk.objects.filter(tenant=tenant), pk=kiosk_id)
    if request.method != "POST":
        context = {"tenant": tenant, "kiosk": kiosk}
        return render(request, "studio/revoke_kiosk.html", context)
    revoke = partial(revoke_kiosk, kiosk)
    audit.recorded(revoke, "kiosk.revoked", kiosk, by=request)()
    messages.success(request, f"{kiosk.name} is revoked. Its screen is closed.")
    return redirect("studio:kiosks", tenant_id=tenant_id)
