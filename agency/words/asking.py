"""What a request asks of a holder: in one sentence, and of which card."""

from collections.abc import Mapping, Sequence
from datetime import date

from django.utils.translation import gettext as _

from agency.words.cards import Card, card_name, draw_asked, label_in
from core.text.days import parse_day
from credentials.models import CredentialDefinition
from verifications.proofs.policy import LOWER_BOUND_TYPES
from verifications.proofs.proof_items import Item
from verifications.wording import (
    Predicate,
    is_validity,
    predicate_of,
    shown_attributes,
)
from wallets.anoncreds import normalise_name

BIRTH = ("birth", "born", "dob")
MAX_AGE = 120


def definition_ids(items: Sequence[Item]) -> set[str]:
    """Those of which the cards are that answer the items."""
    return {
        restriction.definition_id
        for item in items
        for restriction in item.restrictions
        if restriction.definition_id
    }


def label_asked(
    item: Item, name: str, known: Mapping[str, CredentialDefinition]
) -> str:
    """What readers call an attribute: as the issuers of all cards that answer call it.

    Else its own name: who asks may restrict it to a definition of theirs, too, and must
    not choose words for what another card shows.
    """
    labels = {
        label_of_issuer(name, known.get(one.definition_id or ""))
        for one in item.restrictions
    }
    return labels.pop() if len(labels) == 1 else label_in({}, name)


def label_of_issuer(name: str, definition: CredentialDefinition | None) -> str:
    """What an issuer calls an attribute; its own name if the issuer is not known."""
    if definition is None:
        return label_in({}, name)
    asked = normalise_name(name)
    own = definition.schema.attribute_names
    found = next((one for one in own if normalise_name(one) == asked), name)
    return label_in(definition.design, found)


def labels_asked(
    items: Sequence[Item], known: Mapping[str, CredentialDefinition]
) -> list[str]:
    """What is shown of the items, each attribute once."""
    labels: dict[str, str] = {}
    for item in items:
        for name in shown_attributes([item]):
            labels.setdefault(normalise_name(name), label_asked(item, name, known))
    return list(labels.values())


def conditions_asked(
    items: Sequence[Item], known: Mapping[str, CredentialDefinition]
) -> list[Predicate]:
    return [
        predicate_of(item, label_asked(item, item.attribute_names[0], known))
        for item in items
        if item.is_predicate
    ]


def card_asked(
    items: Sequence[Item],
    known: Mapping[str, CredentialDefinition],
    values: Mapping[str, str] | None = None,
) -> Card | None:
    """The one card that answers all items, with what is asked of it; or None.

    values: by the names of attributes, once they were shown.
    """
    ids = definition_ids(items)
    found = known.get(next(iter(ids))) if len(ids) == 1 else None
    if found is None or not all(is_of(item, found) for item in items):
        return None
    given = values or {}
    return draw_asked(
        found, {name: given.get(name, "") for name in shown_attributes(items)}
    )


def is_of(item: Item, definition: CredentialDefinition) -> bool:
    """Whether only cards of the definition answer it."""
    ids = [restriction.definition_id for restriction in item.restrictions]
    return bool(ids) and all(one == definition.definition_id for one in ids)


def ask_in_words(
    items: Sequence[Item], known: Mapping[str, CredentialDefinition], day: date
) -> str:
    """The sentence, or "" if it would not say all: of several cards or conditions.

    day: of the request. known: the definitions of definition_ids() that are here.
    """
    ids = definition_ids(items)
    is_of_one = all(item.restrictions for item in items) and len(ids) == 1
    found = known.get(next(iter(ids))) if is_of_one else None
    proven = [item for item in items if item.is_predicate]
    ages = [age_asked(item, day) for item in proven]
    age = ages[0] if len(ages) == 1 else None
    shows = len(proven) < len(items)
    if proven and age is None:
        return ""
    # Isolated by FSI and PDI: its direction may differ from the sentence's.
    card = f"\u2068{card_name(found)}\u2069" if found else ""
    told = {"card": card, "age": age}
    if age is None:
        return _("Show your %(card)s") % told if found else ""
    if not shows:
        return _("Show that you are %(age)s or older") % told
    if not found:
        return ""
    return _("Show your %(card)s and that you are %(age)s or older") % told


def condition_in_words(
    item: Item, known: Mapping[str, CredentialDefinition], day: date
) -> str:
    """A comparison with what it is about, and the age that it means if it means one."""
    condition = name_condition(item, known)
    age = age_asked(item, day)
    told = {"condition": condition, "age": age}
    return _("%(condition)s, that is %(age)s or older") % told if age else condition


def unmet_in_words(
    item: Item, known: Mapping[str, CredentialDefinition], day: date, card: str
) -> str:
    """Say to a holder what the value on their card does not meet.

    card: what it is called.
    """
    age = age_asked(item, day)
    told = {"condition": name_condition(item, known), "age": age, "card": card}
    if age:
        return _("You need to be %(age)s or older: %(condition)s.") % told
    return _("Your %(card)s card does not meet this: %(condition)s.") % told


def name_condition(item: Item, known: Mapping[str, CredentialDefinition]) -> str:
    [asked] = conditions_asked([item], known)
    # Isolated, as a name may have another direction than the sentence.
    return f"\u2068{asked.label}\u2069: {asked.condition}"


def asks_expiry(item: Item, day: date) -> bool:
    """Whether it asks that a card has not expired: on the day, or by the name."""
    until = parse_day(str(item.threshold))
    if until is None or item.predicate_type not in LOWER_BOUND_TYPES:
        return False
    return until == day or is_validity(item.attribute_names[0])


def age_asked(item: Item, day: date) -> int | None:
    """The age in years that it compares a day of birth with, if it is one."""
    name = normalise_name(item.attribute_names[0])
    born = parse_day(str(item.threshold))
    is_birth = any(part in name for part in BIRTH) and item.predicate_type == "<="
    if not is_birth or not born or (born.month, born.day) != (day.month, day.day):
        return None
    age = day.year - born.year
    return age if 0 < age <= MAX_AGE else None
