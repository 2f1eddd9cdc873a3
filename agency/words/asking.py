"""What a request asks of a holder, in one sentence."""

from collections.abc import Mapping, Sequence
from datetime import date

from django.utils.translation import gettext as _

from agency.words.cards import card_name
from core.text.days import parse_day
from credentials.models import CredentialDefinition
from verifications.proofs.proof_items import Item
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


def age_asked(item: Item, day: date) -> int | None:
    """The age in years that it compares a day of birth with, if it is one."""
    name = normalise_name(item.attribute_names[0])
    born = parse_day(str(item.threshold))
    is_birth = any(part in name for part in BIRTH) and item.predicate_type == "<="
    if not is_birth or not born or (born.month, born.day) != (day.month, day.day):
        return None
    age = day.year - born.year
    return age if 0 < age <= MAX_AGE else None
