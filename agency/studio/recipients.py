"""The choice of whom to offer or ask: a connection that is searched for, or a link."""

from collections import Counter
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agency.api.views import parse_uuid
from agency.studio.choices import find_choices, read_text
from agency.studio.form_tokens import OnceForm
from agency.studio.lists import CONNECTIONS
from agency.studio.objects import own_wallet
from agency.studio.pages import get_membership, studio_page
from connections.models import Connection
from tenants.models import Permission, Tenant

BY_LINK = "By link or QR code, to whoever opens it first"
NOBODY_CHOSEN = "Choose one below, or empty this field to make a link."
USABLE = Q(multi_party=False, state=Connection.State.CONNECTED, left_at=None)


class RecipientForm(OnceForm):
    """`connection_id` is a connection by its id, or "" for a link.

    Its choices are what `find` finds, or the newest ones, and the one that is chosen.
    """

    find = forms.CharField(
        label="Find a connection",
        max_length=200,
        required=False,
        widget=forms.TextInput(attrs={"type": "search", "autocomplete": "off"}),
    )
    connection_id = forms.ChoiceField(label="To", required=False)

    def __init__(
        self, data: Any = None, *, tenant: Tenant, chosen: str = "", **options: Any
    ) -> None:
        """chosen: the key of the connection that is chosen at first, if any."""
        super().__init__(data, **options)
        given = self.data or self.initial
        text = read_text(given.get("find", ""))
        self.found = find_choices(CONNECTIONS, tenant, text, USABLE)
        first = find_chosen(tenant, given.get("connection_id"), chosen)
        rows = list(self.found.rows)
        if first and first not in rows:
            rows.insert(0, first)
        names = Counter(row.name for row in rows)
        self.fields["connection_id"].choices = [
            ("", BY_LINK),
            *((row.connection_id, label_of(row, names)) for row in rows),
        ]
        self.initial["connection_id"] = first.connection_id if first else ""

    def clean(self) -> dict[str, Any]:
        """Who searched and chose nobody must not make a link, which anybody can take."""
        cleaned: dict[str, Any] = super().clean() or {}
        if cleaned.get("find") and cleaned.get("connection_id") == "":
            self.add_error("find", NOBODY_CHOSEN)
        return cleaned


def find_chosen(
    tenant: Tenant, connection_id: str | None, key: str
) -> Connection | None:
    """By the id in the form, else by the key in the address of the page."""
    rows = CONNECTIONS.rows(own_wallet(tenant)).filter(USABLE)
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


@studio_page("GET", "HEAD")
def show_recipients(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """The part of a form that follows its search, while somebody writes."""
    tenant = get_membership(request, tenant_id, Permission.OPERATE).tenant
    form = RecipientForm(initial=request.GET.dict(), tenant=tenant)
    return render(request, "studio/recipients.html", {"form": form})
