"""Forms of organizations, their settings and their keys."""

from typing import Any

from django import forms
from django.core.validators import URLValidator

from agency.studio.form_tokens import OnceForm
from organizations.provisioning import LOCAL
from tenants.models import ApiKey, Network, Tenant

MAX_LIVE_KEYS = 20


class OrganizationForm(OnceForm, forms.ModelForm):
    name = forms.CharField(
        max_length=200, help_text="Holders see it in invitations, offers and requests."
    )
    image_url = forms.URLField(
        label="Logo address",
        max_length=2000,
        required=False,
        assume_scheme="https",
        validators=[URLValidator(["https"])],
        error_messages={"invalid": "Give an address that begins with https://."},
        help_text="A square picture that is served over https.",
    )
    network_id = forms.ChoiceField(
        label="Network",
        help_text="Where your DID, schemas and definitions are published. This cannot "
        "be changed.",
    )

    class Meta:
        model = Tenant
        fields = ["name", "image_url"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        networks = {LOCAL: "Local network (built in)"}
        networks |= dict(Network.objects.exclude(pk=LOCAL).values_list("pk", "name"))
        self.fields["network_id"].choices = list(networks.items())


class SettingsForm(forms.ModelForm):
    class Meta:
        model = Tenant
        fields = ["short_qr_codes"]
        labels = {"short_qr_codes": "QR codes of invitations hold the short link only"}
        help_texts = {
            "short_qr_codes": "Smaller codes, for wallets that open links. Without it "
            "a code holds the whole invitation, which older scanners need."
        }


class KeyForm(OnceForm):
    kind = forms.ChoiceField(label="Kind of key")
    name = forms.CharField(
        max_length=100,
        help_text="Where it will be used, for example “Production server”.",
    )

    def __init__(
        self, *args: Any, kinds: list[str], live: dict[str, int], **kwargs: Any
    ) -> None:
        """kinds: the available kinds. live: the number of live keys by kind."""
        super().__init__(*args, **kwargs)
        self.live = live
        self.fields["kind"].choices = [
            (kind, ApiKey.Kind(kind).label) for kind in kinds
        ]

    def clean_kind(self) -> str:
        kind = self.cleaned_data["kind"]
        if self.live.get(kind, 0) >= MAX_LIVE_KEYS:
            raise forms.ValidationError(
                f"There are {MAX_LIVE_KEYS} live keys of this kind, which is the "
                "most. Revoke one that is not used."
            )
        return kind
