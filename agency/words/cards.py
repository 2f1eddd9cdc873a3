"""What stands on a card: its name, labels and values in the active language."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet
from django.utils.translation import get_language

from core.text.colors import WHITE, parse, text_on
from credentials.models import CredentialDefinition
from credentials.models.card_display import Display
from tenants.models import Asset
from verifications import wording
from wallets.anoncreds import normalise_name

BACKGROUND = "#0b6b62"  # that of agency.css, where nobody has chosen one
FIRST_ON_FACE = 2  # besides the title and the end of the validity
ASKED_ON_FACE = 6
# Characters that two lines of a narrow card have room for. The face cuts what is longer,
# so that the back has it too.
LONG = 20
LONG_LABEL = 30


@dataclass(frozen=True)
class Entry:
    """An attribute. text: its value in words, "" where a page must not tell it."""

    name: str
    label: str
    text: str = ""

    @property
    def is_cut(self) -> bool:
        return len(self.text) > LONG or len(self.label) > LONG_LABEL


@dataclass(frozen=True)
class Card:
    """What card.html draws. background: as `#rrggbb`, from our database alone."""

    name: str
    issuer: str
    logo_path: str = ""
    picture_path: str = ""
    background: str = BACKGROUND
    title: Entry | None = None
    face: list[Entry] = field(default_factory=list)
    back: list[Entry] = field(default_factory=list)

    @property
    def is_dark(self) -> bool:
        """Whether white can be read on it better than black."""
        return text_on(parse(self.background)) == WHITE


def translate(texts: Mapping[str, str]) -> str:
    """The text in the active language, else in English, else the first; or ""."""
    wanted = (get_language() or "en").lower()
    by_language = {name.lower(): text for name, text in texts.items()}
    for language in (wanted, wanted.partition("-")[0], "en"):
        if language in by_language:
            return by_language[language]
        for name, text in by_language.items():
            if name.partition("-")[0] == language:
                return text
    return next(iter(by_language.values()), "")


def label_in(display: Display, name: str) -> str:
    """What readers call an attribute."""
    chosen = translate(display.get("labels", {}).get(name, {}))
    return chosen or wording.label_of(name)


def card_name(definition: CredentialDefinition) -> str:
    return translate(definition.design.get("names", {})) or definition.schema.name


def draw_card(
    definition: CredentialDefinition,
    values: Mapping[str, str] | None = None,
    design: Display | None = None,
) -> Card:
    """The card of a definition: an issued one with its values, or what it has.

    design: in place of its own.
    """
    tenant = definition.tenant
    look = definition.design if design is None else design
    names = definition.schema.attribute_names if values is None else list(values)
    return place_entries(
        look,
        names,
        values or {},
        name=card_name(definition),
        issuer=tenant.name,
        logo_path=Asset.path_of(look.get("logo", "")) or tenant.logo_path,
        picture_path=Asset.path_of(look.get("picture", "")),
        background=tenant.primary_color or BACKGROUND,
    )


def draw_asked(definition: CredentialDefinition, values: Mapping[str, str]) -> Card:
    """The card that answers a request, with only what is asked of it.

    values: "" for each that a page must not tell, or that nobody has shown.
    """
    given = {normalise_name(name): text for name, text in values.items()}
    known = definition.schema.attribute_names
    own = [name for name in known if normalise_name(name) in given]
    # A request may ask for what the schema does not have: no card answers it then.
    strange = given.keys() - {normalise_name(name) for name in own}
    other = [name for name in values if normalise_name(name) in strange]
    asked = {name: given[normalise_name(name)] for name in [*own, *other]}
    design: Display = {**definition.design, "back": []}
    title = design.get("title")
    if title not in asked:
        title = next(iter(asked), None)
        design = {**design, "title": title} if title else design
    face = [name for name in asked if name != title][:ASKED_ON_FACE]
    return draw_card(definition, asked, {**design, "face": face})


def place_entries(
    display: Display,
    names: list[str],
    values: Mapping[str, str],
    *,
    background: str,
    **shown: Any,
) -> Card:
    """Put each attribute in its place: chosen, else the first ones on the face."""
    entries = {
        name: Entry(
            name,
            label_in(display, name),
            wording.value_words(name, values.get(name, "")),
        )
        for name in names
    }
    left = dict(entries)
    back = [left.pop(name) for name in display.get("back", []) if name in left]
    chosen = [left.pop(name) for name in display.get("face", []) if name in left]
    ends = [name for name in left if wording.is_validity(name)]
    first = next((name for name in left if name not in ends), next(iter(left), None))
    title_name = display.get("title", first)
    title = left.pop(title_name, None) if title_name else None
    if "face" not in display:
        plain = [name for name in left if name not in ends][:FIRST_ON_FACE]
        chosen = [left.pop(name) for name in plain]
    # Until when it is valid is on the back only if the issuer wants it there.
    chosen += [left.pop(name) for name in ends if name in left]
    face = [title, *chosen] if title else chosen
    cut = [entry for entry in face if entry.is_cut]
    return Card(
        background=display.get("colors", {}).get("background", background),
        title=title,
        face=chosen,
        back=[*cut, *back, *left.values()],
        **shown,
    )


def definitions_of(
    tenant_id: UUID, definition_ids: Iterable[str]
) -> dict[str, CredentialDefinition]:
    """The definitions with these ids that any organization here made on its network.

    One query for all, also for what they look like.
    """
    rows: QuerySet[CredentialDefinition] = CredentialDefinition.objects.filter(
        tenant__network__tenant=tenant_id, definition_id__in=set(definition_ids)
    )
    rows = rows.select_related("schema", "tenant").defer("private_key", "key_proof")
    found: Iterable[Any] = rows.annotate(former=F("other_formats__display"))
    known = {}
    for one in found:
        if one.display is None:
            one.display = one.former or {}
        known[one.definition_id] = one
    return known
