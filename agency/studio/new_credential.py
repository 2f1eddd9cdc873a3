"""The studio's page that offers a credential: by a connection, a link or a QR code.

The call of the API makes the offer, with the same options.
"""

from datetime import date
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.core.validators import MinValueValidator
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.utils import timezone

from agency.holders.links.views import preview_offer
from agency.studio.api_forms import read_parameters
from agency.studio.choices import choose_from
from agency.studio.definitions import get_definition
from agency.studio.exchange.just_typed import note_typed
from agency.studio.exchange.views import to_object_page
from agency.studio.forms import focus_field
from agency.studio.lists import DEFINITIONS
from agency.studio.pages import (
    MemberRequest,
    ids_in,
    member_page,
    refusals_above,
    to_page,
)
from agency.studio.recipients import RecipientForm
from agency.words.cards import draw_card
from connections.api.serializers import link_protocol
from core.api.pagination import only_columns
from core.api.views import heavy
from core.database.uuids import parse_uuid
from core.errors import AgencyError
from core.text.days import parse_day
from core.text.relative_dates import day_of_number, resolve_value
from core.work import network_reads, transactions
from credentials.api.issuer import offer_function
from credentials.api.serializers import CredentialOfferParameters
from credentials.models import Credential, CredentialDefinition
from credentials.models.credential import MAX_RECIPIENT_NAME
from credentials.models.definition import BOOLEAN, DATE, INTEGER
from tenants import audit
from tenants.models import Permission
from verifications.wording import ended_on, is_date_name, is_validity
from wallets.anoncreds import normalise_name
from wallets.models import Wallet

WHOLE_NUMBER = "A whole number."
DAY_IS_OVER = "Give a day that is not over."
DAY_AS_NUMBER = "A whole number, such as 20260131 for a day."
MAX_VALUE = 10_000  # characters
# Why the log says that the values of a card were read.
ISSUED_AGAIN = "To issue the card again"
FIRST_END = "today+1y"  # of a card, until another day is chosen


class OfferForm(RecipientForm):
    """Fields `value_0`, … are the attributes in the order of the schema."""

    automatic_issuance = forms.BooleanField(
        label="Issue it as soon as the holder accepts",
        required=False,
        initial=True,
        help_text="Else it waits on its page for “Issue the credential”.",
    )
    recipient_name = forms.CharField(
        label="For whom",
        max_length=MAX_RECIPIENT_NAME,
        required=False,
        help_text="A name for your lists, which the holder does not see. If it is "
        "empty, the name on the card.",
    )

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        definition: CredentialDefinition,
        chosen: str = "",
        initial: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(data, tenant=definition.tenant, chosen=chosen, initial=initial)
        self.definition = definition
        if self.chosen and not self.initial.get("recipient_name"):
            self.initial["recipient_name"] = self.chosen.name
        self.names = definition.schema.attribute_names
        for number, name in enumerate(self.names):
            self.fields[f"value_{number}"] = value_field(name, definition.type_of(name))
        if not self.has_choice:  # which comes before the values
            focus_field(self, "value_0")

    @property
    def value_fields(self) -> list[forms.BoundField]:
        return [self[f"value_{number}"] for number in range(len(self.names))]

    @property
    def values(self) -> dict[str, str]:
        """What is offered, by the names of the attributes. A date is a number."""
        given = {
            name: self.cleaned_data.get(f"value_{number}", "")
            for number, name in enumerate(self.names)
        }
        return {
            name: f"{value:%Y%m%d}" if isinstance(value, date) else value
            for name, value in given.items()
        }

    @property
    def recipient_in_words(self) -> str:
        words = super().recipient_in_words
        name = self.parameters.get("recipientName")
        return f"{name} ({words})" if name else words

    def clean(self) -> None:
        """Let the API's serializer and the definition judge what is offered."""
        super().clean()
        cleaned = self.cleaned_data
        if self.errors:
            return
        to_connection = cleaned["connection_id"] or None
        body = {
            "definitionId": self.definition.definition_id,
            "connectionId": to_connection,
            "automaticIssuance": cleaned["automatic_issuance"],
            "recipientName": cleaned["recipient_name"] or None,
            "credentialValues": self.values,
            "protocol": None
            if to_connection
            else link_protocol(self.definition.tenant),
        }
        self.parameters = read_parameters(self, CredentialOfferParameters, body)
        try:
            self.definition.check_values(self.values)
        except AgencyError as error:
            for member, sentences in (error.errors or {}).items():
                name = member.partition("credentialValues.")[2]
                self.add_error(f"value_{self.names.index(name)}", sentences)


def value_field(name: str, kind: str) -> forms.Field:
    """The field of an attribute. kind: its type, as the definition declares it."""
    if kind == DATE:
        limits = {"type": "date"}
        end, validators = None, []
        if is_validity(name):
            today = timezone.now().date()
            limits["min"] = f"{today:%Y-%m-%d}"
            validators.append(MinValueValidator(today, DAY_IS_OVER))
            end = day_of_number(resolve_value(FIRST_END, today))
        day = forms.DateInput(attrs=limits, format="%Y-%m-%d")
        return forms.DateField(
            label=name,
            input_formats=["%Y-%m-%d"],
            initial=end,
            widget=day,
            validators=validators,
        )
    if kind == BOOLEAN:
        return forms.ChoiceField(
            label=name, choices=[("", "---"), ("true", "Yes"), ("false", "No")]
        )
    attrs = {"autocomplete": "off"}
    help_text = ""
    if kind == INTEGER:
        attrs["inputmode"] = "numeric"
        help_text = DAY_AS_NUMBER if is_date_name(name) else WHOLE_NUMBER
    return forms.CharField(
        label=name,
        max_length=MAX_VALUE,
        required=False,
        strip=False,
        help_text=help_text,
        widget=forms.TextInput(attrs=attrs),
    )


@heavy
@member_page("GET", "POST", needs=Permission.OPERATE, once="studio:credentials")
def new_credential(request: MemberRequest) -> HttpResponse:
    """Choose a definition, write the values, see it as the holder will, and offer.

    All is one form, and its buttons are the steps: `look` searches for recipients,
    `change` leaves the preview, `confirmed` offers. Any other shows the preview. `again`
    in the query is a credential whose person and values the form offers, which the log
    says; `like` is one too, of which another definition is chosen.
    """
    former = find_former(request)
    definition_id = parse_uuid(request.GET.get("definition", ""))
    definition: CredentialDefinition | None = None
    if definition_id:
        definition = get_definition(request.tenant, definition_id)
    elif former and "again" in request.GET:
        definition = definition_of(former)
    if definition is None:
        return render_choice(request, former)
    chosen = request.GET.get("connection", "")
    if former and not former.is_by_link:
        chosen = str(former.connection_id)
    if request.method != "POST":
        given = read_former(request, former, definition) if former else None
        form = OfferForm(definition=definition, chosen=chosen, initial=given)
        return render_form(request, form, former=former)
    if "look" in request.POST:
        given = {"automatic_issuance": ""} | request.POST.dict()
        form = OfferForm(initial=given, definition=definition)
        return render_form(request, form)
    form = OfferForm(request.POST, definition=definition, chosen=chosen)
    if not form.is_valid() or "change" in request.POST:
        return render_form(request, form)
    if "confirmed" not in request.POST:
        return render_form(request, form, is_preview=True)
    with refusals_above(form):
        offered = send_offer(request, form)
        note_typed(request, offered)
        return to_object_page(offered)
    return render_form(request, form)


def find_former(request: MemberRequest) -> Credential | None:
    """The credential that `again` or `like` in the query names. Raises Http404."""
    named = ids_in(request, "again", "like")
    if not (key := named.get("again") or named.get("like")):
        return None
    rows = Credential.objects.filter(
        wallet=Wallet.of_organization(request.tenant), role=Credential.Role.ISSUER
    )
    card = get_object_or_404(rows.select_related("connection"), pk=key)
    card.tenant = request.tenant
    return card


def definition_of(card: Credential) -> CredentialDefinition | None:
    """That of the card; None once it was deleted: the page lets choose another one."""
    active = only_columns(CredentialDefinition.active_of(card.tenant), ())
    definition = active.filter(definition_id=card.definition_id).first()
    if definition:
        definition.tenant = card.tenant
    return definition


def read_former(
    request: MemberRequest, card: Credential, definition: CredentialDefinition
) -> dict[str, Any]:
    """What the form offers of a credential, after the log says who reads it.

    Of another definition, the values of attributes that have the same names. The last
    day of a validity that is over is left out.
    """
    values = {
        normalise_name(name): value
        for name, value in (card.unsealed_values() or {}).items()
    }
    over = [
        name
        for name in definition.schema.attribute_names
        if ended_on({name: values.get(normalise_name(name), "")})
    ]
    with transactions.atomic():
        audit.record("values.revealed", card, by=request, reason=ISSUED_AGAIN)
    initial: dict[str, Any] = {"recipient_name": card.unsealed_recipient_name()}
    for number, name in enumerate(definition.schema.attribute_names):
        given: str | date | None = values.get(normalise_name(name), "")
        if name in over:
            given = None
        elif definition.type_of(name) == DATE:
            given = parse_day(str(given))
        if given:
            initial[f"value_{number}"] = given
    return initial


def send_offer(request: MemberRequest, form: OfferForm) -> Credential:
    """Offer, in one transaction with the audit entry.

    It runs again after each ledger read. 404 if the connection is gone, 409
    `wrong_state` if it is not connected.
    """
    offer = offer_function(request.tenant, form.parameters)
    recorded = audit.recorded(offer, "credential.offered", by=request)
    return network_reads.retry_transaction(recorded)


def render_choice(request: MemberRequest, former: Credential | None) -> HttpResponse:
    """The page that asks which definition. There is nothing to choose from one."""
    context = choose_from(request, DEFINITIONS, request.tenant)
    choices = context["choices"]
    wanted = ids_in(request, "connection")
    if former:
        wanted["like"] = former.pk
    if len(choices.rows) == 1 and "q" not in request.GET:
        wanted |= {"definition": choices.rows[0].pk}
        return to_page("studio:new_credential", request.tenant, wanted)
    asked = {"wanted": wanted, "query": urlencode(wanted)}
    return render(request, "studio/choose_definition.html", {**context, **asked})


def render_form(
    request: MemberRequest,
    form: OfferForm,
    is_preview: bool = False,
    former: Credential | None = None,
) -> HttpResponse:
    context = {
        "form": form,
        "definition": form.definition,
        "is_preview": is_preview,
        "former": former,
    }
    if is_preview:
        context |= preview_offer(draw_card(form.definition, form.values))
        context["recipient"] = form.recipient_in_words
    return render(request, "studio/new_credential.html", context)
