"""The studio's page that invites somebody to connect, and the acceptance of requests.

The functions that the API calls do the work: create_invitation() and
held_requests.accept_request().
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from agency.studio.api_forms import read_parameters
from agency.studio.exchange.kinds import KINDS
from agency.studio.exchange.views import get_object, to_object_page
from agency.studio.form_tokens import OnceForm, once_per_form
from agency.studio.pages import get_membership, studio_page
from connections.api.connections import create_invitation
from connections.api.serializers import (
    BOTH,
    CONNECTIONS,
    OUT_OF_BAND,
    ConnectionInvitationParameters,
)
from connections.protocols import held_requests
from core.errors import AgencyError
from tenants import audit
from tenants.models import Membership, Permission
from wallets.models import Wallet

PERIODS = {
    "hour": ("In an hour", timedelta(hours=1)),
    "day": ("In a day", timedelta(days=1)),
    "week": ("In a week", timedelta(weeks=1)),
}


class ConnectionForm(OnceForm):
    name = forms.CharField(
        label="Name",
        max_length=200,
        required=False,
        help_text="Yours, to find the connection again: the other side does not see "
        "it. Write no personal data that you do not need.",
    )
    multi_party = forms.TypedChoiceField(
        label="Who may use it",
        choices=[("", "One person"), ("many", "Anybody who has it, as a poster")],
        coerce=bool,
        required=False,
        empty_value=False,
    )
    protocol = forms.ChoiceField(
        label="Format",
        choices=[
            (BOTH, "Both: a wallet takes the one that it reads"),
            (OUT_OF_BAND, "Out-of-band, which newer wallets read"),
            (CONNECTIONS, "Connections 1.0, which older wallets read"),
        ],
        required=False,
    )
    goal = forms.CharField(
        label="What it is for",
        max_length=200,
        required=False,
        help_text="In the words of the holder. Connections 1.0 cannot say it.",
    )
    expires = forms.ChoiceField(
        label="Ends",
        choices=[("", "Never"), *((name, PERIODS[name][0]) for name in PERIODS)],
        required=False,
    )
    confirm_connections = forms.BooleanField(
        label="Let me accept each request first", required=False
    )

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        body = {
            "name": cleaned["name"],
            "multiParty": cleaned["multi_party"],
            "confirmConnections": cleaned["confirm_connections"],
        }
        body["protocol"] = cleaned["protocol"] or BOTH
        if cleaned["goal"]:
            body["goal"] = cleaned["goal"]
        if cleaned["expires"]:
            body["expiresAt"] = timezone.now() + PERIODS[cleaned["expires"]][1]
        # What the API reads of the same choices.
        self.parameters = read_parameters(self, ConnectionInvitationParameters, body)
        return cleaned


@studio_page("GET", "HEAD", "POST")
@once_per_form(back="studio:connections")
def new_connection(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Show the form. If it was sent, make the invitation and lead to its page.

    The audit entry is written in the same transaction. What the call refuses, such as
    409 `quota_exceeded`, is shown above the form; what get_membership() refuses is a
    page.
    """
    membership = get_membership(request, tenant_id, Permission.OPERATE)
    if request.method != "POST":
        return render_form(request, membership, ConnectionForm())
    form = ConnectionForm(request.POST)
    if not form.is_valid():
        return render_form(request, membership, form)
    invite = audit.recorded(create_invitation, "connection.invited", by=request)
    try:
        connection = invite(Wallet.of_organization(membership.tenant), form.parameters)
    except AgencyError as error:
        form.add_error(None, error.message)
        return render_form(request, membership, form)
    return to_object_page(connection)


def render_form(
    request: HttpRequest, membership: Membership, form: ConnectionForm
) -> HttpResponse:
    context = {"membership": membership, "tenant": membership.tenant, "form": form}
    return render(request, "studio/new_connection.html", context)


@studio_page("POST")
@once_per_form(back="studio:connection", keep=("tenant_id", "object_id"))
def accept_request(
    request: HttpRequest, tenant_id: UUID, object_id: UUID
) -> HttpResponse:
    """Let somebody connect who has answered an invitation that holds requests.

    The response that was held back is sent, and recorded, in one transaction. 409
    `nothing_to_confirm` is shown on the page.
    """
    tenant = get_membership(request, tenant_id, Permission.OPERATE).tenant
    row = get_object(tenant, KINDS["connection"], object_id)
    accept = audit.recorded(
        held_requests.accept_request, "connection.accepted", row, by=request
    )
    try:
        accept(row)
        messages.success(request, "The request is accepted.")
    except AgencyError as error:
        messages.error(request, error.message)
    return to_object_page(row)
