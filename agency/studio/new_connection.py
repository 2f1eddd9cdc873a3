"""The studio's page that invites somebody to connect, and the acceptance of requests.

The functions that the API calls do the work: create_invitation() and
held_requests.accept_request().
"""

from datetime import timedelta
from uuid import UUID

from django import forms
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone

from agency.studio.api_forms import read_parameters
from agency.studio.exchange.kinds import ConnectionPage
from agency.studio.exchange.views import to_object_page
from agency.studio.form_tokens import OnceForm
from agency.studio.pages import (
    MemberRequest,
    member_action,
    member_page,
    refusals_above,
)
from connections.api.connections import create_invitation
from connections.api.serializers import (
    BOTH,
    CONNECTIONS,
    OUT_OF_BAND,
    ConnectionInvitationParameters,
)
from connections.protocols import held_requests
from tenants import audit
from tenants.models import Permission
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
    multi_party = forms.ChoiceField(
        label="Who may use it",
        choices=[("", "One person"), ("many", "Anybody who has it, as a poster")],
        required=False,
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

    def clean(self) -> None:
        super().clean()
        cleaned = self.cleaned_data
        if self.errors:
            return
        body = {
            "name": cleaned["name"],
            "multiParty": bool(cleaned["multi_party"]),
            "confirmConnections": cleaned["confirm_connections"],
        }
        body["protocol"] = cleaned["protocol"] or BOTH
        if cleaned["goal"]:
            body["goal"] = cleaned["goal"]
        if cleaned["expires"]:
            body["expiresAt"] = timezone.now() + PERIODS[cleaned["expires"]][1]
        # What the API reads of the same choices.
        self.parameters = read_parameters(self, ConnectionInvitationParameters, body)


@member_page("GET", "POST", needs=Permission.OPERATE, once="studio:connections")
def new_connection(request: MemberRequest) -> HttpResponse:
    """Show the form. If it was sent, make the invitation and lead to its page.

    The audit entry is written in the same transaction. What the call refuses, such as
    409 `quota_exceeded`, is shown above the form.
    """
    form = ConnectionForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        invite = audit.recorded(create_invitation, "connection.invited", by=request)
        with refusals_above(form):
            own = Wallet.of_organization(request.tenant)
            return to_object_page(invite(own, form.parameters))
    return render(request, "studio/new_connection.html", {"form": form})


@member_action("studio:connection", needs=Permission.OPERATE)
def accept_request(request: MemberRequest, object_id: UUID) -> str:
    """Let somebody connect who has answered an invitation that holds requests.

    The response that was held back is sent, and recorded, in one transaction. 409
    `nothing_to_confirm` is shown on the page.
    """
    row = ConnectionPage.find(request.tenant, object_id).row
    accept = held_requests.accept_request
    audit.recorded(accept, "connection.accepted", row, by=request)(row)
    return "The request is accepted."
