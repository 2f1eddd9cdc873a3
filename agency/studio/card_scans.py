"""The studio's page that scans a code which a holder shows, beside a policy."""

from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import render

from agency.holders.wallet import shown_cards
from agency.server.middleware import allow_camera
from agency.studio.exchange.views import to_object_page
from agency.studio.pages import MemberRequest, member_page, refusals_above
from agency.studio.policies import get_policy
from core.api.views import heavy
from core.work import network_reads
from tenants import audit
from tenants.models import Permission

WAITS = "The question waits in the wallet of the card that you scanned."


class CardForm(forms.Form):
    card = forms.CharField(
        label="Code of the card",
        max_length=shown_cards.MAX_GIVEN,
        help_text="A scanner types it here. It is for one scan, within a minute.",
        widget=forms.TextInput(
            attrs={
                "autofocus": True,
                "autocomplete": "off",
                "autocapitalize": "off",
                "spellcheck": "false",
            }
        ),
    )


@heavy
@member_page("GET", "POST", needs=Permission.OPERATE)
def scan_card(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """Ask the wallet that shows a code by the policy. Leads to the request.

    A code is taken once, so a form that is sent twice asks once. Refusals are shown
    above the form: errors as of find_shown() and ask_function().
    """
    policy = get_policy(request.tenant, object_id)
    form = CardForm(request.POST or None)
    if form.is_valid():
        with refusals_above(form):
            shown = shown_cards.find_shown(form.cleaned_data["card"], request.tenant)
            ask = audit.recorded(
                shown_cards.ask_function(shown, policy),
                "verification.requested",
                by=request,
            )
            asked = network_reads.retry_transaction(ask)
            messages.success(request, WAITS)
            return to_object_page(asked)
    context = {"form": form, "policy": policy}
    return allow_camera(render(request, "studio/scan_card.html", context))
