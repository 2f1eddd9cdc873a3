"""Forms of the studio's pages of events and webhooks."""

from datetime import datetime, timedelta
from typing import TypedDict

from django import forms
from django.utils import timezone
from rest_framework import serializers

from agency.studio.form_tokens import OnceForm
from core.errors import Invalid
from webhooks.api.serializers import (
    MAX_BATCH,
    MAX_URL,
    MESSAGE_TYPES,
    SHOWN_STATUS,
    WebhookOptions,
)
from webhooks.events.types import CLIENTS

RECOVERY_PERIODS = {
    "missed": ("The first missed event, else five days ago", None),
    "hour": ("One hour ago", timedelta(hours=1)),
    "day": ("A day ago", timedelta(days=1)),
    "week": ("A week ago", timedelta(weeks=1)),
}


class FilterForm(forms.Form):
    """Filters of a list: each field is a lookup of the queryset."""

    def lookups(self) -> dict[str, str]:
        """Return the queryset lookups of the filters that are set."""
        return {name: value for name, value in self.cleaned_data.items() if value}


class EventFilter(FilterForm):
    type = forms.ChoiceField(
        label="Type", choices=[("", "All types"), *MESSAGE_TYPES], required=False
    )
    object_id = forms.CharField(label="Object id", max_length=128, required=False)


class DeliveryFilter(FilterForm):
    status = forms.ChoiceField(
        label="Status",
        choices=[("", "All"), *SHOWN_STATUS.items()],
        required=False,
    )


class WebhookForm(OnceForm):
    url = forms.CharField(
        label="Address",
        max_length=MAX_URL,
        widget=forms.URLInput,
        help_text="The events of the types below are posted there as JSON, signed with "
        "a secret that you will see.",
    )
    message_types = forms.MultipleChoiceField(
        label="Types of events",
        choices=MESSAGE_TYPES,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=f"Choose none for the usual ones: {', '.join(CLIENTS)}.",
    )
    retry_unconfirmed = forms.TypedChoiceField(
        label="Send again what was sent in full and not answered",
        choices=[
            ("", "If the address has answered before"),
            ("yes", "Always"),
            ("no", "Never"),
        ],
        coerce=lambda chosen: chosen == "yes",
        empty_value=None,
        required=False,
    )

    batch = forms.IntegerField(
        label="Events in one call, at most",
        min_value=1,
        max_value=MAX_BATCH,
        required=False,
        help_text="With a number, the body of a call is a list of events. With none, "
        "it is one event.",
    )

    def clean_url(self) -> str:
        """Validate the URL like the API."""
        options = WebhookOptions()
        try:
            return options.validate_url(
                options.fields["url"].run_validation(self.cleaned_data["url"])
            )
        except serializers.ValidationError as error:
            raise forms.ValidationError([str(one) for one in error.detail]) from None
        except Invalid as error:
            raise forms.ValidationError(error.message) from None


class ExampleForm(OnceForm):
    type = forms.ChoiceField(label="Type of event", choices=MESSAGE_TYPES)


class RecoveryOptions(TypedDict):
    """The arguments of Webhook.start_recovery()."""

    since: datetime | None
    unconfirmed: bool


class RecoveryForm(OnceForm):
    since = forms.ChoiceField(
        label="What failed since",
        choices=[(name, label) for name, (label, _) in RECOVERY_PERIODS.items()],
    )
    unconfirmed = forms.BooleanField(
        label="Also what was never answered", required=False
    )

    def recovery_options(self) -> RecoveryOptions:
        _, ago = RECOVERY_PERIODS[self.cleaned_data["since"]]
        since = timezone.now() - ago if ago else None
        return RecoveryOptions(
            since=since, unconfirmed=self.cleaned_data["unconfirmed"]
        )
