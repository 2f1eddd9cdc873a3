"""Forms of organizations, their settings and their keys."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Generic, TypeVar

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.core.validators import URLValidator
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from agency.studio.form_tokens import OnceForm
from tenants import branding
from tenants.lifecycle.provisioning import LOCAL, WEBVH, all_networks
from tenants.models import ApiKey, Asset, Scope, Tenant
from tenants.models.keys import MAX_LIVE_KEYS
from tenants.models.organizations import MAX_VISITOR_WALLETS

MAX_LINES_LENGTH = 50_000
MAX_DAYS = 3650
PROPOSED_DAYS = 90  # for the values of a new organization
# Settings that a request may leave out.
KEPT_IF_LEFT_OUT = (
    "name",
    "image_url",
    "invalid_proof_answer",
    "invitation_protocol",
    "values_kept_days",
    "exchanges_kept_days",
)
Given = TypeVar("Given")
Read = TypeVar("Read")
Line = TypeVar("Line")
NOT_ENGLISH = [item for item in branding.LANGUAGES.items() if item[0] != "en"]


def choice_field(form: forms.BaseForm, name: str) -> forms.ChoiceField:
    field = form.fields[name]
    assert isinstance(field, forms.ChoiceField)
    return field


def focus_field(form: forms.Form, name: str) -> None:
    """Put the cursor into this field, unless the form is shown again with errors."""
    if not form.is_bound:
        form.fields[name].widget.attrs["autofocus"] = True


def validate_logo_address(address: str) -> None:
    """Accept https, and pictures that are stored here, on a developer's machine too."""
    if not Asset.path_of(address):
        URLValidator(["https"])(address)


class DaysField(forms.IntegerField):
    """A number of days, or nothing: then what it is about is kept."""

    def __init__(
        self, *, label: str, help_text: str, initial: int | None = None
    ) -> None:
        super().__init__(
            required=False,
            min_value=1,
            max_value=MAX_DAYS,
            label=label,
            help_text=help_text,
            initial=initial,
        )


class OrganizationForm(OnceForm, forms.ModelForm):
    name = forms.CharField(
        max_length=200, help_text="Holders see it on everything that you send."
    )
    values_kept_days = DaysField(
        label="Days to keep values",
        initial=PROPOSED_DAYS,
        help_text="So many days after a card is issued or a check is done, you no "
        "longer see the values and names in it. That it was issued stays, you can still "
        "revoke it, and holders keep their cards. Leave it empty to keep all. The "
        "settings change this.",
    )
    image_url = forms.URLField(
        label="Logo address",
        max_length=2000,
        required=False,
        assume_scheme="https",
        validators=[validate_logo_address],
        error_messages={"invalid": "Give an address that begins with https://."},
        help_text="Of a picture that wallet apps load and show. Pages here show only "
        "one that was uploaded in the settings of the organization.",
    )
    visitor_wallets = forms.BooleanField(
        label="Holders without a wallet app may make a wallet here",
        required=False,
        initial=True,
        help_text="The pages of your links then offer a web wallet to whoever opens "
        "them.",
    )
    network_id = forms.ChoiceField(
        label="Network",
        help_text="Where what others need to check your credentials is published. "
        "Wallet apps read Indy ledgers; cards of the local network are for wallets "
        "hosted here. This cannot be changed.",
    )
    host = forms.CharField(
        label="Domain, if the network is did:webvh",
        required=False,
        max_length=253,
        help_text="One that leads here already. It is for life: whoever loses the "
        "domain loses all that was issued. Empty: the one of this installation.",
    )
    is_test = forms.BooleanField(
        label="For tests only",
        required=False,
        help_text="It has simulated holders that answer by themselves, so that you can "
        "try everything without a phone. Its credentials, proofs and connections are "
        "deleted after 30 days.",
    )

    class Meta:
        model = Tenant
        fields = ["name", "image_url"]

    def __init__(
        self,
        data: QueryDict | None = None,
        files: MultiValueDict[str, UploadedFile] | None = None,
        *,
        instance: Tenant | None = None,
        initial: dict[str, str] | None = None,
    ) -> None:
        """Also as the admin calls it."""
        super().__init__(data, files, instance=instance, initial=initial)
        focus_field(self, "name")
        networks = {LOCAL: "Local network (built in)"}
        networks |= dict(all_networks().exclude(pk=LOCAL).values_list("pk", "name"))
        choice_field(self, "network_id").choices = list(networks.items())
        self.fields["network_id"].initial = LOCAL
        if len(networks) == 1:
            self.fields["network_id"].widget = forms.HiddenInput()
        if WEBVH not in networks:
            self.fields["host"].widget = forms.HiddenInput()


class LinesField(forms.CharField, Generic[Line]):
    """A list, one entry on each line. `read` cleans the entries, or raises ValueError."""

    widget = forms.Textarea(attrs={"rows": 3})

    def __init__(
        self, read: Callable[[list[str]], list[Line]], *, label: str, help_text: str
    ) -> None:
        super().__init__(
            required=False,
            max_length=MAX_LINES_LENGTH,
            label=label,
            help_text=help_text,
        )
        self.read = read

    def clean(self, value: str | None) -> list[Line]:
        lines = super().clean(value).splitlines()
        return clean_or_refuse(self.read, [line for line in lines if line.strip()])


def clean_or_refuse(read: Callable[[Given], Read], value: Given) -> Read:
    """The result of a function of tenants/branding.py, or the error of a form."""
    try:
        return read(value)
    except ValueError as error:
        raise forms.ValidationError(str(error)) from None


def read_wallet_apps(lines: list[str]) -> list[branding.WalletAppLinks]:
    """Read lines such as `Example Wallet https://… https://…`."""
    apps: list[branding.WalletAppLinks] = []
    for line in lines:
        words = line.split()
        urls = [word for word in words if "://" in word]
        name = " ".join(word for word in words if "://" not in word)
        apps.append({"name": name, "urls": urls})
    return branding.clean_wallet_apps(apps)


class TypedColorInput(forms.TextInput):
    """A color as text, which may be empty. field.html has a picker beside it."""


class SettingsForm(forms.ModelForm):
    """Name, logo address and choices that a request leaves out stay as they are."""

    field_order = ("name", "image_url", "logo")

    name = forms.CharField(
        max_length=200,
        required=False,
        help_text="Holders see it in invitations, offers and requests.",
        widget=forms.TextInput(attrs={"required": True}),
    )
    image_url = OrganizationForm.base_fields["image_url"]
    visitor_wallets = OrganizationForm.base_fields["visitor_wallets"]
    visitor_wallets_a_day = forms.IntegerField(
        label="Wallets a day by one link that many may use",
        required=False,
        min_value=1,
        max_value=MAX_VISITOR_WALLETS,
        help_text="A link for one person makes one.",
    )
    logo = forms.FileField(
        label="Logo",
        required=False,
        help_text="A square picture: PNG, JPEG, WebP or GIF. It is stored here, and "
        "the logo address leads to it.",
    )
    wallet_apps = LinesField(
        read_wallet_apps,
        label="Wallet apps",
        help_text="One on each line: its name, then the addresses at which it can be "
        "installed. The pages of your links recommend them.",
    )
    return_urls = LinesField(
        branding.clean_return_urls,
        label="Return addresses",
        help_text="One on each line. The page of a link may lead back to an address "
        "below these (returnUrl).",
    )

    values_kept_days = DaysField(
        label="Days to keep values",
        help_text="That many days after an exchange of the organization is finished, "
        "its values, names, proof and checks are deleted. Its state stays, you can "
        "still revoke it, and holders keep their cards. Leave it empty to keep all.",
    )
    exchanges_kept_days = DaysField(
        label="Days to keep finished exchanges",
        help_text="After that, the whole record is deleted: a credential can then not "
        "be revoked any more. Leave it empty to keep them. What the organization "
        "holds itself stays.",
    )

    class Meta:
        model = Tenant
        fields = [
            "name",
            "image_url",
            "invitation_protocol",
            "short_qr_codes",
            "invalid_proof_answer",
            "names_for_all",
            "name_search",
            "own_wallet_api",
            "visitor_wallets",
            "visitor_wallets_a_day",
            "primary_color",
            "secondary_color",
            "default_language",
            "values_kept_days",
            "exchanges_kept_days",
        ]
        labels = {
            "invitation_protocol": "Invitations, and links of offers and requests",
            "short_qr_codes": "QR codes of invitations hold the short link only",
            "invalid_proof_answer": "Answer to a proof that is not valid",
            "names_for_all": "All members see the names of people on cards",
            "name_search": "People are found by their names",
            "own_wallet_api": "The organization holds credentials itself",
            "primary_color": "Color of buttons",
            "secondary_color": "Color behind your name",
            "default_language": "Language",
        }
        help_texts = {
            "invitation_protocol": "Of pages, kiosks and calls of the API that do not "
            "say it. With Both, offers and requests are out-of-band.",
            "short_qr_codes": "Smaller codes, for wallets that open links. Without it "
            "a code holds the whole invitation, which older scanners need.",
            "names_for_all": "Otherwise owners and operators do. A definition says "
            "which attribute is the name.",
            "name_search": "By the first letters of each word. For that, whoever has "
            "the database sees which names begin alike. Without it, what finds them is "
            "deleted.",
            "own_wallet_api": "The wallet API then takes the id of its own wallet "
            "(ownWalletId of the organization).",
            "invalid_proof_answer": "Choose the ack for wallets that expect what "
            "ACA-Py sends.",
            "primary_color": "On the pages of your links, as in #0b6b62. It is changed "
            "where it could not be read.",
            "default_language": "Of the pages of your links, for readers whose browser "
            "names none of these.",
        }
        widgets = {
            "primary_color": TypedColorInput,
            "secondary_color": TypedColorInput,
            "default_language": forms.Select(
                choices=[("", "English"), *NOT_ENGLISH],
            ),
        }

    def __init__(
        self,
        data: QueryDict | None,
        files: MultiValueDict[str, UploadedFile] | None,
        *,
        instance: Tenant,
    ) -> None:
        initial = {
            "wallet_apps": "\n".join(
                " ".join([app["name"], *app["urls"]])
                for app in instance.wallet_apps or []
            ),
            "return_urls": "\n".join(instance.return_urls or []),
        }
        super().__init__(data, files, instance=instance, initial=initial)
        for name in ("invalid_proof_answer", "invitation_protocol"):
            self.fields[name].required = False

    def clean(self) -> None:
        super().clean()
        given = self.cleaned_data
        if "name" in self.data and not given.get("name") and "name" not in self.errors:
            self.add_error("name", "Give the organization a name.")
        for name in KEPT_IF_LEFT_OUT:
            if name not in self.data:
                given.pop(name, None)

    def keep_fields(self, names: Collection[str]) -> None:
        """Leave out the other ones, which then stay as they are."""
        for name in self.fields.keys() - set(names):
            del self.fields[name]

    def clean_visitor_wallets_a_day(self) -> int:
        given = self.cleaned_data["visitor_wallets_a_day"]
        return given or self.instance.visitor_wallets_a_day

    def clean_primary_color(self) -> str:
        return clean_or_refuse(branding.clean_color, self.cleaned_data["primary_color"])

    def clean_secondary_color(self) -> str:
        return clean_or_refuse(
            branding.clean_color, self.cleaned_data["secondary_color"]
        )

    def clean_default_language(self) -> str:
        language = self.cleaned_data["default_language"]
        if language and language not in branding.LANGUAGES:
            raise forms.ValidationError("Choose one of the languages.")
        return language


class DeletionForm(forms.Form):
    """Asks for the name of what is deleted, so that nobody deletes another one."""

    typed_name = forms.CharField(max_length=200)

    def __init__(
        self, data: QueryDict | None, *, name: str, of: str = "organization"
    ) -> None:
        super().__init__(data)
        self.name, self.of = name, of
        self.fields["typed_name"].label = f"Name of the {of}"

    def clean_typed_name(self) -> str:
        typed = self.cleaned_data["typed_name"]
        # As a browser shows it: with single spaces.
        if " ".join(typed.split()) != " ".join(self.name.split()):
            raise forms.ValidationError(f"This is not the name of the {self.of}.")
        return typed


KEY_LIFETIMES = [
    ("", "Never, until it is revoked"),
    *((str(days), f"In {days} days") for days in (7, 30, 90, 365)),
]


class KeyForm(OnceForm):
    kind = forms.ChoiceField(label="Kind of key")
    name = forms.CharField(
        max_length=100,
        help_text="Where it will be used, for example “Production server”.",
    )
    lifetime = forms.TypedChoiceField(
        label="Ends",
        choices=KEY_LIFETIMES,
        coerce=lambda days: timedelta(days=int(days)),
        empty_value=None,
        required=False,
        help_text="Calls with it are refused from then on.",
    )
    scopes = forms.MultipleChoiceField(
        label="What an access token may do",
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="It stays so: to change it, make another key. The other kinds of keys "
        "have no such choice.",
    )
    strict = forms.BooleanField(
        label="Strict",
        required=False,
        help_text="Of an access token: lists refuse a filter that they do not know. "
        "Else they leave it out, and a misspelt one lists everything.",
    )

    def __init__(
        self,
        data: QueryDict | None,
        *,
        kinds: Sequence[str],
        scopes: list[str],
        live: Mapping[str, int],
    ) -> None:
        """kinds, scopes: those available. live: the number of live keys by kind."""
        super().__init__(data)
        self.live = live
        choice_field(self, "scopes").choices = [
            (scope, Scope(scope).label) for scope in scopes
        ]
        self.fields["scopes"].initial = scopes
        choice_field(self, "kind").choices = [
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

    def clean(self) -> None:
        """Leave `scopes` out for keys that have none, and require one of the others."""
        super().clean()
        given = self.cleaned_data
        if given.get("kind") != ApiKey.Kind.ACCESS_TOKEN:
            given |= {"scopes": None, "strict": False}
        elif given.get("scopes") == []:
            self.add_error("scopes", "Tick what it may do.")
