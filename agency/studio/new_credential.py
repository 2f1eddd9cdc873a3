"""The studio's page that offers a credential: by a connection, a link or a QR code.

The call of the API makes the offer, with the same options.
"""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agency.api.pagination import only_columns
from agency.api.views import heavy, parse_uuid
from agency.core import network_reads
from agency.core.errors import AgencyError
from agency.studio.api_forms import read_parameters
from agency.studio.definitions import get_definition
from agency.studio.exchange.views import object_page
from agency.studio.form_tokens import OnceForm, once_per_form
from agency.studio.objects import describe_rows, own_wallet
from agency.studio.pages import get_membership, ids_in, studio_page, to_page
from connections.models import Connection
from credentials.api.issuer import make_offer
from credentials.api.serializers import CredentialOfferParameters
from credentials.models import Credential, CredentialDefinition
from tenants import audit
from tenants.models import Membership, Permission, Tenant

MAX_CONNECTIONS = 50  # to choose from, the newest
MAX_DEFINITIONS = 50
BY_LINK = "By link or QR code, to whoever opens it first"
WHOLE_NUMBER = "A whole number; a date as 20260131."
MAX_VALUE = 10_000  # characters


class RecipientField(forms.ChoiceField):
    """A connection by its id, or "" for a link."""

    def __init__(self, **options: Any) -> None:
        super().__init__(label="To", required=False, **options)

    def offer(self, tenant: Tenant, chosen: str) -> None:
        """Offer the newest connections, and the chosen one, by its key."""
        rows = Connection.objects.filter(
            wallet=own_wallet(tenant),
            connectionless=False,
            multi_party=False,
            state=Connection.State.CONNECTED,
            left_at=None,
        ).only("connection_id", "name")
        found = list(rows.order_by("-pk")[:MAX_CONNECTIONS])
        wanted = parse_uuid(chosen) if chosen else None
        first = next((row for row in found if row.pk == wanted), None)
        if wanted and not first:
            first = rows.filter(pk=wanted).first()
            found += [first] if first else []
        named = [(row.connection_id, row.name or row.connection_id) for row in found]
        self.choices = [("", BY_LINK), *named]
        self.initial = first.connection_id if first else ""


class OfferForm(OnceForm):
    """Fields `value_0`, … are the attributes in the order of the schema."""

    connection_id = RecipientField()
    automatic_issuance = forms.BooleanField(
        label="Issue it as soon as the holder accepts",
        required=False,
        initial=True,
        help_text="Else it waits on its page for “Issue the credential”.",
    )

    def __init__(
        self,
        data: Any = None,
        *,
        definition: CredentialDefinition,
        chosen: str = "",
        **options: Any,
    ) -> None:
        """chosen: the key of the connection that is offered first, if any."""
        super().__init__(data, **options)
        self.definition = definition
        self.fields["connection_id"].offer(definition.tenant, chosen)
        self.names = definition.schema.attribute_names
        for number, name in enumerate(self.names):
            is_number = name in definition.claims
            self.fields[f"value_{number}"] = forms.CharField(
                label=name,
                max_length=MAX_VALUE,
                required=False,
                strip=False,
                help_text=WHOLE_NUMBER if is_number else "",
                widget=forms.TextInput(
                    attrs={"autocomplete": "off"}
                    | ({"inputmode": "numeric"} if is_number else {})
                ),
            )

    @property
    def value_fields(self) -> list[forms.BoundField]:
        return [self[f"value_{number}"] for number in range(len(self.names))]

    @property
    def values(self) -> dict[str, str]:
        """What is offered, by the names of the attributes."""
        return {
            name: self.cleaned_data.get(f"value_{number}", "")
            for number, name in enumerate(self.names)
        }

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        body = {
            "definitionId": self.definition.definition_id,
            "connectionId": cleaned["connection_id"] or None,
            "automaticIssuance": cleaned["automatic_issuance"],
            "credentialValues": self.values,
        }
        self.parameters = read_parameters(self, CredentialOfferParameters, body)
        try:
            self.definition.check_values(self.values)
        except AgencyError as error:
            self.add_value_errors(error)
        return cleaned

    def add_value_errors(self, error: AgencyError) -> None:
        for member, sentences in (error.errors or {}).items():
            name = member.partition("credentialValues.")[2]
            self.add_error(f"value_{self.names.index(name)}", sentences)


@heavy
@studio_page("GET", "HEAD", "POST")
@once_per_form(back="studio:credentials")
def new_credential(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Choose a definition, write the values, see them as the holder will, offer."""
    membership = get_membership(request, tenant_id, Permission.OPERATE)
    tenant = membership.tenant
    definition_id = parse_uuid(request.GET.get("definition", ""))
    if not definition_id:
        return render_choice(request, membership)
    definition = get_definition(tenant, definition_id)
    definition.tenant = tenant
    chosen = request.GET.get("connection", "")
    if request.method != "POST":
        form = OfferForm(definition=definition, chosen=chosen)
        return render_form(request, membership, form)
    form = OfferForm(request.POST, definition=definition, chosen=chosen)
    if not form.is_valid() or "change" in request.POST:
        return render_form(request, membership, form)
    if "confirmed" not in request.POST:
        return render_form(request, membership, form, is_preview=True)
    try:
        return object_page(send_offer(request, tenant, form))
    except AgencyError as error:
        form.add_error(None, error.message)
        return render_form(request, membership, form)


def send_offer(request: HttpRequest, tenant: Tenant, form: OfferForm) -> Credential:
    offer = make_offer(tenant, form.parameters)
    recorded = audit.recorded(offer, "credential.offered", by=request)
    return network_reads.retry_transaction(recorded)


def render_choice(request: HttpRequest, membership: Membership) -> HttpResponse:
    """The page that asks which definition. For a connection, one is chosen at once."""
    tenant = membership.tenant
    definitions = describe_rows(tenant, newest_definitions(tenant))
    wanted = ids_in(request, "connection")
    if wanted and len(definitions) == 1:
        wanted |= {"definition": definitions[0].pk}
        return to_page("studio:new_credential", tenant, wanted)
    context = {
        "membership": membership,
        "tenant": tenant,
        "definitions": definitions,
        "wanted": urlencode(wanted),
    }
    return render(request, "studio/choose_definition.html", context)


def newest_definitions(tenant: Tenant) -> QuerySet[CredentialDefinition]:
    rows = only_columns(CredentialDefinition.active_of(tenant), ())
    return rows.order_by("-pk")[:MAX_DEFINITIONS]


def render_form(
    request: HttpRequest,
    membership: Membership,
    form: OfferForm,
    is_preview: bool = False,
) -> HttpResponse:
    context = {
        "membership": membership,
        "tenant": membership.tenant,
        "form": form,
        "definition": form.definition,
        "is_preview": is_preview,
    }
    if is_preview:
        context["values"] = list(form.values.items())
        context["recipient"] = dict(form.fields["connection_id"].choices)[
            form.cleaned_data["connection_id"]
        ]
    return render(request, "studio/new_credential.html", context)
