"""What a proof request asks a holder, and what an answered one has shown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _

from agency.holders.wallet.holdings import (
    Value,
    draw_unknown,
    ended_in_words,
    name_cards,
    name_rows,
    read_values,
)
from agency.words.asking import (
    ask_in_words,
    card_asked,
    conditions_asked,
    definition_ids,
    label_asked,
    unmet_in_words,
)
from agency.words.cards import Card, definitions_of, draw_asked, label_in
from connections.didcomm.reasons import find_decline
from core.errors import Invalid
from credentials.models import Credential, CredentialDefinition, CredentialFormat
from tenants import vault
from verifications.models import Verification
from verifications.present_proof import prover
from verifications.proofs.proof_items import Item, contains_name
from verifications.proofs.selection import Selection
from verifications.wording import Predicate, shown_attributes
from wallets.anoncreds import normalise_name

MAX_REASON = 500  # characters


@dataclass(frozen=True)
class Choice:
    """A card that fits. values: what it would show."""

    card: Credential
    values: list[Value]


@dataclass(frozen=True)
class Question:
    """An item of a request.

    number: its place. shown: what the attributes that are shown are called. predicate:
    what is only proven, or None.
    """

    number: int
    shown: list[str]
    predicate: Predicate | None
    may_hide: bool
    choices: list[Choice]

    @property
    def only_choice(self) -> Choice | None:
        return self.choices[0] if len(self.choices) == 1 else None


@dataclass(frozen=True)
class Disclosure:
    """What an answered request has told: the names of attributes, never values.

    declined: that the holder did not answer it, in words.
    """

    row: Verification
    at: datetime
    shown: list[str]
    proven: list[Predicate]
    hidden: list[str]
    declined: str = ""


def build_question(
    number: int,
    item: Item,
    cards: list[Any],
    known: Mapping[str, CredentialDefinition],
) -> Question:
    """Return an item as the page asks it.

    cards: the credentials of the wallet that fit. Those that have expired or were
    revoked come last. known: the definitions whose words are used.
    """
    own = [] if item.is_predicate else list(item.attribute_names)
    shown = [*own, *item.companions]
    revoked = Credential.State.REVOKED
    cards = sorted(cards, key=lambda card: card.is_expired or card.state == revoked)
    return Question(
        number,
        [label_asked(item, name, known) for name in shown],
        next(iter(conditions_asked([item], known)), None),
        # A value that is required must be shown.
        not item.is_predicate and not any(one.value for one in item.restrictions),
        [
            Choice(card, values_asked(card, shown, known.get(card.definition_id)))
            for card in cards
        ],
    )


def values_asked(
    card: Any, names: Iterable[str], definition: CredentialDefinition | None
) -> list[Value]:
    """Those of the card with one of the names, as its issuer calls them."""
    values = [one for one in card.values_shown if contains_name(names, one.name)]
    if definition is None:
        return values
    design = definition.design
    return [replace(one, chosen=label_in(design, one.name)) for one in values]


def draw_source(
    card: Any, items: Iterable[Item], known: Mapping[str, CredentialDefinition]
) -> Card:
    """The card that answers all items, with only the values that it would show."""
    names = shown_attributes(items)
    values = {one.name: one.text for one in values_asked(card, names, None)}
    found = known.get(card.definition_id)
    return draw_asked(found, values) if found else draw_unknown(card, values)


def consent_context(verification: Verification) -> dict[str, Any]:
    """Return what the page says of an open request, with the cards that fit.

    The request does not change. The ledger may be read, so this stands outside of
    transactions.

    verification: unsaved for the request of a link (preview_shared_request). `source`
    is the card that answers all of it, if no other card fits anything; `asked_card` one
    without values, if it alone could answer.
    """
    available = prover.find_available(verification)
    cards = {card.pk: card for _, fitting in available for card in fitting}
    name_rows(list(cards.values()))
    for card in cards.values():
        read_values(card)
    items = [item for item, _ in available]
    ids = {card.definition_id for card in cards.values()}
    known = definitions_of(verification.tenant_id, ids | definition_ids(items))
    name_cards(list(cards.values()), known)
    questions = [
        build_question(number, item, [cards[card.pk] for card in fitting], known)
        for number, (item, fitting) in enumerate(available)
    ]
    can_answer = all(one.choices for one in questions)
    source = next(iter(cards.values())) if len(cards) == 1 and can_answer else None
    day = (verification.created_at or timezone.now()).date()
    # An SD-JWT VC shows a claim or proves nothing of it.
    can_hide = verification.format != CredentialFormat.SD_JWT
    hideable = [one for one in questions if one.may_hide and one.choices]
    return {
        "questions": questions,
        "shown": [one for one in questions if not one.predicate],
        "proven": [one for one in questions if one.predicate],
        "hideable": hideable if can_hide else [],
        "source": source,
        "source_card": draw_source(source, items, known) if source else None,
        "asked_card": None if source else card_asked(items, known),
        "sentence": ask_in_words(items, known, day),
        "can_answer": can_answer,
        "ended": [] if can_answer else describe_unfit(verification),
    }


def describe_unfit(verification: Verification) -> list[str]:
    """Say why cards that are asked for do not answer: each ended, or what is not met.

    The holder alone reads it. The verifier is told no more than that no card fits.
    """
    unfit: list[tuple[Item, Any, bool]] = [*prover.find_unfit(verification)]
    cards = list({card.pk: card for _, card, _ in unfit}.values())
    name_rows(cards)
    for card in cards:
        read_values(card)
    items = verification.require_proof_request().items
    ids = {card.definition_id for card in cards} | definition_ids(items)
    known = definitions_of(verification.tenant_id, ids) if cards else {}
    name_cards(cards, known)
    day = (verification.created_at or timezone.now()).date()
    told = [
        ended_in_words(card)
        if is_revoked or card.last_day
        else unmet_in_words(item, known, day, card.title)
        for item, card, is_revoked in unfit
    ]
    return list(dict.fromkeys(told))


def describe_decline(verification: Verification) -> str:
    """What the holder has done with a question that they declined, or "".

    "" too if an answer to it may have been seen.
    """
    if verification.problem != "declined" or verification.proof is not None:
        return ""
    if said_unfit(verification):
        return _("You told them that no card of yours fits. Nothing was shown.")
    return _("You declined this question. Nothing was shown.")


def said_unfit(verification: Verification) -> bool:
    """Whether the holder has declined it because no card fits."""
    is_own = verification.problem == "declined"
    return is_own and find_decline(verification.unsealed_reason()) == "no_card_fits"


def read_reason(form: QueryDict) -> str:
    """Why the holder declines: own words, or the code that was chosen of DECLINES.

    The other side reads it. No message holds U+0000.
    """
    reason = form.get("words", "").strip() or form.get("reason", "")
    return reason.replace("\x00", "").strip()[:MAX_REASON]


def read_selections(verification: Verification, form: QueryDict) -> list[Selection]:
    """The chosen card of each item. Raises Invalid `choice_missing`."""
    items = verification.require_proof_request().items
    chosen = [form.get(f"card-{number}", "") for number in range(len(items))]
    if not all(chosen):
        raise Invalid("choice_missing", "Choose a card for each question.")
    return [
        Selection(item.policy_name, card, bool(form.get(f"hide-{number}")))
        for number, (item, card) in enumerate(zip(items, chosen, strict=True))
    ]


def disclosures_of(verifications: Sequence[Verification]) -> list[Disclosure]:
    """The disclosure of each, with one query for the words of all issuers."""
    items = {row.pk: row.require_proof_request().items for row in verifications}
    ids = definition_ids([item for of_row in items.values() for item in of_row])
    known = definitions_of(verifications[0].tenant_id, ids) if ids else {}
    return [disclosure_of(row, items[row.pk], known) for row in verifications]


def disclosure_of(
    verification: Verification,
    items: Sequence[Item],
    known: Mapping[str, CredentialDefinition],
) -> Disclosure:
    """Return what the presentation that was sent has shown, hidden and proven.

    Read from its own referents: the holder may have hidden or skipped what was asked.
    """
    sent: dict[str, Any] = vault.unseal(verification, "presentation") or {}
    parts = sent.get("requested_proof", {})
    revealed = {
        *parts.get("revealed_attrs", {}),
        *parts.get("revealed_attr_groups", {}),
    }
    if verification.format == CredentialFormat.SD_JWT:
        # It is answered as a whole, but the card decides which claims are shown.
        proof = verification.unsealed_proof() or {}
        revealed = {*proof}
        items = [
            replace(item, attribute_names=names_shown(item, proof[item.policy_name]))
            for item in items
            if item.policy_name in proof
        ]
    hidden, proven = parts.get("unrevealed_attrs", {}), parts.get("predicates", {})
    attributes = [item for item in items if not item.is_predicate]
    return Disclosure(
        verification,
        verification.verified_at or verification.in_state_since,
        [
            *labels_in(attributes, revealed, known),
            *(
                label_asked(item, name, known)
                for item in items
                for name, referent in item.companions.items()
                if referent in revealed
            ),
        ],
        [
            condition
            for item in items
            if revealed.union(proven).issuperset(item.referents)
            for condition in conditions_asked([item], known)
        ],
        labels_in(attributes, set(hidden), known),
        describe_decline(verification),
    )


def names_shown(item: Item, entry: Mapping[str, Any]) -> tuple[str, ...]:
    """The attributes of which an item's entry in `proof` has a value."""
    if "attributes" in entry:
        return tuple(entry["attributes"])
    return (entry["name"],) if "name" in entry else item.attribute_names


def labels_in(
    items: Iterable[Item],
    referents: set[str],
    known: Mapping[str, CredentialDefinition],
) -> list[str]:
    """What the attributes that these referents answer are called, each once.

    An item is answered if all its referents are among them.
    """
    names = {
        normalise_name(name): label_asked(item, name, known)
        for item in items
        if referents.issuperset(item.referents)
        for name in item.attribute_names
    }
    return list(names.values())
