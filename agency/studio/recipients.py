"""The choice of whom to offer or ask: whoever opens a link, or a connection."""

from collections import Counter
from typing import Any

from django import forms
from django.db.models import Q, QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import render

from agency.studio.choices import find_choices, read_text
from agency.studio.form_tokens import OnceForm
from agency.studio.forms import choice_field
from agency.studio.lists import CONNECTIONS
from agency.studio.pages import MemberRequest, member_page
from connections.models import Connection
from core.database.uuids import parse_uuid
from tenants.models import Permission, Tenant
from wallets.models import Wallet

LINK, CONNECTION = "link", "connection"
WAYS = (
    (LINK, "QR code or link: anybody you show it to"),
    (CONNECTION, "Somebody you are connected with"),
)
BY_LINK = "QR code or link, for one person"
NOBODY = "Nobody yet"
NOBODY_CHOSEN = "Choose one below, or choose the link."
USABLE = Q(multi_party=False) & Connection.USABLE


class RecipientForm(OnceForm):
    """`connection_id` is a connection by its id; once cleaned, "" for a link.

    Its choices are what `find` finds, or the newest ones, and the one that is chosen.
    A page without anybody to choose has none of these fields, which means a link.
    """

    to = forms.ChoiceField(
        label="To", choices=WAYS, required=False, widget=forms.RadioSelect
    )
    find = forms.CharField(
        label="Find a connection",
        max_length=200,
        required=False,
        widget=forms.TextInput(attrs={"type": "search", "autocomplete": "off"}),
    )
    connection_id = forms.ChoiceField(label="Connection", required=False)

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        tenant: Tenant,
        chosen: str = "",
        initial: dict[str, Any] | None = None,
    ) -> None:
        """chosen: the key of the connection that is chosen at first, if any."""
        super().__init__(data, initial=initial)
        given = self.data or self.initial
        text = read_text(given.get("find", ""))
        self.found = find_choices(CONNECTIONS, tenant, text, USABLE)
        self.chosen = first = find_chosen(tenant, given.get("connection_id"), chosen)
        # The chosen one is offered too where the search does not find it.
        rows = list(self.found.rows)
        if first and first not in rows:
            rows.insert(0, first)
        names = Counter(row.name for row in rows)
        self.labels = {"": NOBODY}
        self.labels |= {row.connection_id: label_of(row, names) for row in rows}
        choice_field(self, "connection_id").choices = list(self.labels.items())
        self.initial["connection_id"] = first.connection_id if first else ""
        self.initial.setdefault("to", CONNECTION if first else LINK)
        self.has_choice = bool(rows or text or given.get("connection_id"))

    @property
    def recipient_in_words(self) -> str:
        """Whom a valid form names, in words."""
        chosen = self.cleaned_data["connection_id"]
        return self.labels[chosen] if chosen else BY_LINK

    def clean(self) -> None:
        """Who searched and chose nobody must not make a link, which anybody can take."""
        super().clean()
        cleaned = self.cleaned_data
        is_sought = cleaned.get("find") or cleaned.get("connection_id")
        to = cleaned.get("to") or (CONNECTION if is_sought else LINK)
        if to == LINK:
            cleaned["connection_id"] = ""
        elif cleaned.get("connection_id") == "":
            self.add_error("find", NOBODY_CHOSEN)


def usable_connections(tenant: Tenant) -> QuerySet[Connection]:
    """Return those over which somebody can be offered or asked something."""
    return CONNECTIONS.rows(Wallet.of_organization(tenant)).filter(USABLE)


def find_chosen(
    tenant: Tenant, connection_id: str | None, key: str
) -> Connection | None:
    """Find it by the id in the form, else by the key in the address of the page.

    None if the form was sent without an id, and if the connection is not usable.
    """
    rows = usable_connections(tenant)
    row: Connection | None = None
    if wanted := read_text(connection_id or ""):
        row = rows.filter(connection_id=wanted).first()
    elif connection_id is None and (parsed := parse_uuid(key)):
        row = rows.filter(pk=parsed).first()
    return row


def label_of(row: Connection, names: Counter[str]) -> str:
    """The name; with the id, if others have it too."""
    if not row.name:
        return row.connection_id
    return f"{row.name} ({row.connection_id})" if names[row.name] > 1 else row.name


@member_page("GET", needs=Permission.OPERATE)
def show_recipients(request: MemberRequest) -> HttpResponse:
    """The part of a form that follows its search, while somebody writes."""
    form = RecipientForm(initial=request.GET.dict(), tenant=request.tenant)
    return render(request, "studio/recipients.html", {"form": form})
