"""The studio's pages of kiosks. A kiosk's link is shown in one response only."""

from uuid import UUID

from django import forms
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render

from agency.studio.api_forms import read_parameters
from agency.studio.form_tokens import OnceForm
from agency.studio.forms import choice_field
from agency.studio.pages import (
    MemberRequest,
    member_action,
    member_page,
    refusals_above,
)
from agency.studio.policies import get_policy, render_choice
from connections.api import qr_codes
from core.database.uuids import parse_uuid
from tenants import audit
from tenants.models import Permission
from verifications.api.kiosks import KioskParameters
from verifications.kiosks import (
    MAX_KIOSKS,
    MAX_SECONDS,
    MIN_SECONDS,
    NoCard,
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
    no_card_text = forms.CharField(
        label="What to do without a card",
        required=False,
        max_length=300,
        help_text="The screen says it under “I have no card”.",
    )
    no_card_url = forms.CharField(
        label="Where to get one",
        required=False,
        max_length=200,
        widget=forms.URLInput,
        help_text="A page of yours. The screen shows it as a QR code.",
    )

    def __init__(
        self, data: QueryDict | None = None, *, policy: VerificationPolicy
    ) -> None:
        super().__init__(data)
        self.policy = policy
        items = policy.unsealed_policy().attributes
        choice_field(self, "shown_items").choices = [
            (item.policy_name, ", ".join(item.attribute_names)) for item in items
        ]

    def clean(self) -> None:
        super().clean()
        cleaned = self.cleaned_data
        body = {
            "name": cleaned.get("name"),
            "policyId": str(self.policy.pk),
            "seconds": cleaned.get("seconds"),
            "shownItems": cleaned.get("shown_items"),
            "noCardText": cleaned.get("no_card_text"),
            "noCardUrl": cleaned.get("no_card_url"),
        }
        if not self.errors:
            self.body = read_parameters(self, KioskParameters, body)


@member_page("GET")
def show_kiosks(request: MemberRequest) -> HttpResponse:
    """The kiosks, newest first, for any member. Revoked ones are deleted.

    Without their links: of each only a digest is stored.
    """
    rows = Kiosk.objects.filter(tenant=request.tenant).order_by("-pk")
    kiosks = rows.select_related("policy").defer("policy__body")
    context = {
        "kiosks": kiosks[:MAX_KIOSKS],
        "may_change": request.membership.may(Permission.OPERATE),
    }
    return render(request, "studio/kiosks.html", context)


@member_page("GET", "POST", needs=Permission.OPERATE, once="studio:kiosks")
def new_kiosk(request: MemberRequest) -> HttpResponse:
    """Choose a policy, then what the screen shows. The answer has the link.

    It is stored and recorded in one transaction, which locks the organization. 400
    `unknown_item` and 409 `too_many_kiosks` are shown above the form.
    """
    policy_id = parse_uuid(request.GET.get("policy", ""))
    if not policy_id:
        return render_choice(request, title="New kiosk", back="kiosks")
    policy = get_policy(request.tenant, policy_id)
    form = KioskForm(request.POST or None, policy=policy)
    context = {"policy": policy, "form": form}
    if form.is_valid():
        create = audit.recorded(create_kiosk, "kiosk.created", by=request)
        with refusals_above(form):
            kiosk = create(
                request.tenant,
                policy,
                name=form.body["name"],
                seconds=form.body["seconds"],
                shown_items=form.body["shownItems"],
                no_card=NoCard(form.body["noCardText"], form.body["noCardUrl"]),
            )
            context |= {"kiosk": kiosk, "picture": qr_codes.data_address(kiosk.url)}
            return render(request, "studio/kiosk_created.html", context)
    return render(request, "studio/new_kiosk.html", context)


@member_action(
    "studio:kiosks", needs=Permission.OPERATE, once="", asks=True, may_be_refused=False
)
def remove_kiosk(request: MemberRequest, kiosk_id: UUID) -> HttpResponse | str:
    """Revoke a kiosk after a question, in one transaction with the audit entry.

    A request on its screen that nobody has answered is removed too.
    """
    kiosk = get_object_or_404(Kiosk.objects.filter(tenant=request.tenant), pk=kiosk_id)
    if request.method != "POST":
        return render(request, "studio/revoke_kiosk.html", {"kiosk": kiosk})
    audit.recorded(revoke_kiosk, "kiosk.revoked", kiosk, by=request)(kiosk)
    return f"{kiosk.name} is revoked. Its screen is closed."
