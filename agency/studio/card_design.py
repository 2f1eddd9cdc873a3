"""The page on which an organization says how cards of a definition look.

PATCH of the definition in the API takes the same as `display`. A picture is stored when
it is chosen, and its address is a field of the form from then on.
"""

from typing import NamedTuple, cast
from uuid import UUID

from django import forms
from django.contrib import messages
from django.forms import BoundField
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import translation

from agency.holders.links.views import preview_offer
from agency.studio.definitions import example_card, get_definition
from agency.studio.pages import MemberRequest, member_page
from agency.words.cards import draw_card
from core.errors import AgencyError
from core.text.colors import parse, text_on, to_hex
from credentials.api.serializers import COLOR, MAX_FACE
from credentials.models import CredentialDefinition
from credentials.models.card_display import Display
from tenants import audit, pictures
from tenants.branding import LANGUAGES
from tenants.models import Asset, Permission

TITLE, FACE, BACK = "title", "face", "back"
SIDES = [(TITLE, "Title"), (FACE, "Face"), (BACK, "Back")]
MAX_TEXT = 200  # characters, as in the API
TEMPLATE = "studio/card_design.html"


class AttributeFields(NamedTuple):
    name: str
    side: BoundField
    labels: list[BoundField]


class DesignForm(forms.Form):
    """Fields `side_0`, `label_0_en`, … for each attribute in the schema's order."""

    background = forms.RegexField(
        COLOR,
        label="Color",
        widget=forms.TextInput(attrs={"type": "color"}),
        help_text="Text on it is black or white, whichever can be read better.",
    )
    language = forms.ChoiceField(
        label="Show it in", choices=list(LANGUAGES.items()), required=False
    )
    picture = forms.CharField(required=False, max_length=2000, widget=forms.HiddenInput)
    upload = forms.FileField(
        label="Picture",
        required=False,
        widget=forms.FileInput(
            attrs={
                "accept": ",".join(pictures.CONTENT_TYPES),
                "hx-post": "",
                "hx-encoding": "multipart/form-data",
                "hx-params": "*",
                # Else the form is sent too, without the file.
                "hx-trigger": "input consume",
            }
        ),
        help_text="At the edge of the face: PNG, JPEG, WebP or GIF. It is stored here.",
    )

    def __init__(
        self, data: QueryDict | None, *, definition: CredentialDefinition
    ) -> None:
        super().__init__(data)
        self.tenant_id = definition.tenant_id
        self.former = definition.design
        self.names = definition.schema.attribute_names
        card = draw_card(definition)
        self.initial["background"] = card.background
        self.initial["picture"] = self.former.get("picture", "")
        for language, called in LANGUAGES.items():
            self.fields[f"name_{language}"] = text_field(
                f"Name, {called}", self.former.get("names", {}).get(language, "")
            )
        face = [entry.name for entry in card.face]
        for number, name in enumerate(self.names):
            is_title = card.title is not None and card.title.name == name
            place = TITLE if is_title else FACE if name in face else BACK
            self.fields[f"side_{number}"] = forms.ChoiceField(
                label=f"Where {name} stands", choices=SIDES, initial=place
            )
            known = self.former.get("labels", {}).get(name, {})
            for language, called in LANGUAGES.items():
                label = f"{name}, {called}"
                field = text_field(label, known.get(language, ""))
                self.fields[f"label_{number}_{language}"] = field

    @property
    def name_fields(self) -> list[BoundField]:
        return [self[f"name_{language}"] for language in LANGUAGES]

    @property
    def attributes(self) -> list[AttributeFields]:
        return [
            AttributeFields(
                name,
                self[f"side_{number}"],
                [self[f"label_{number}_{language}"] for language in LANGUAGES],
            )
            for number, name in enumerate(self.names)
        ]

    def clean_picture(self) -> str:
        address: str = self.cleaned_data["picture"]
        if address and not Asset.is_stored(self.tenant_id, address):
            raise forms.ValidationError("Choose the picture again.")
        return address

    def clean(self) -> None:
        super().clean()
        if len(self.on(TITLE)) > 1:
            self.add_error(None, "Choose one attribute as the title.")
        if len(self.on(FACE)) > MAX_FACE:
            self.add_error(None, f"The face has room for {MAX_FACE} attributes.")

    def on(self, side: str) -> list[str]:
        given = self.cleaned_data
        return [
            name
            for number, name in enumerate(self.names)
            if given.get(f"side_{number}") == side
        ]

    @property
    def display(self) -> Display:
        """What the API takes. What the form has no field for stays."""
        background = self.cleaned_data["background"]
        labels = {
            name: self.texts(f"label_{number}", self.former.get("labels", {}).get(name))
            for number, name in enumerate(self.names)
        }
        chosen = {
            "colors": {
                "background": background,
                "text": to_hex(text_on(parse(background))),
            },
            "names": self.texts("name", self.former.get("names")),
            "labels": {name: texts for name, texts in labels.items() if texts},
            "picture": self.cleaned_data["picture"],
            "title": next(iter(self.on(TITLE)), ""),
            "face": self.on(FACE),
            "back": self.on(BACK),
        }
        kept = {"logo": self.former["logo"]} if "logo" in self.former else {}
        may_be_empty = ("names", "labels", "title", "picture")
        is_empty = {name for name in may_be_empty if not chosen[name]}
        filled = {name: chosen[name] for name in chosen.keys() - is_empty}
        return cast(Display, kept | filled)

    def texts(self, prefix: str, former: dict[str, str] | None) -> dict[str, str]:
        """By language; those in languages that the form does not offer stay."""
        others = {
            name: text for name, text in (former or {}).items() if name not in LANGUAGES
        }
        given = {name: self.cleaned_data[f"{prefix}_{name}"] for name in LANGUAGES}
        return {name: text for name, text in given.items() if text} | others


def text_field(label: str, initial: str) -> forms.CharField:
    return forms.CharField(
        label=label, initial=initial, max_length=MAX_TEXT, required=False
    )


@member_page("GET", "POST", needs=Permission.OPERATE)
def design_cards(request: MemberRequest, object_id: UUID) -> HttpResponse:
    """Show the form beside the card. POST saves it; with `look` it only draws the card.

    The card is on the page of its offer, as on a phone. With `live`, which the form
    sends while somebody types, only that is answered, and what becomes of a picture
    that was chosen.
    """
    definition = get_definition(request.tenant, object_id)
    given, refusal = store_upload(request)
    form = DesignForm(given, definition=definition)
    if refusal:
        form.add_error("upload", refusal)
    is_look = bool(request.POST.keys() & {"look", "live"})
    if form.is_valid():
        if not is_look:
            change = audit.recorded(
                definition.change_display, "definition.designed", definition, by=request
            )
            change(form.display)
            messages.success(request, "All cards of this kind look like this now.")
            return redirect("studio:definition", request.tenant.pk, definition.pk)
        definition.display = form.display
    chosen = form["language"].value()
    language = chosen if chosen in LANGUAGES else "en"
    with translation.override(language):
        page = preview_offer(example_card(definition))
    context = page | {
        "form": form,
        "definition": definition,
        "shown_in": language,
        "has_upload": "upload" in request.FILES,
    }
    template = f"{TEMPLATE}#live" if "live" in request.POST else TEMPLATE
    return render(request, template, context)


def store_upload(request: MemberRequest) -> tuple[QueryDict | None, str]:
    """Store a picture that came with the form. Return what was given, with its address.

    Also why it was not stored, or "". `without` in `look` takes the picture away.
    """
    if not request.POST:
        return None, ""
    given = request.POST.copy()
    if given.get("look") == "without":
        given["picture"] = ""
    if uploaded := request.FILES.get("upload"):
        try:
            stored = pictures.store_picture(request.tenant.provider, uploaded.read())
        except AgencyError as error:
            return given, error.message
        given["picture"] = stored.address
    return given, ""
