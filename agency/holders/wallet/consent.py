"""What a proof request asks a holder, and what an answered one has shown."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import QueryDict

from agency.holders.wallet.holdings import (
    Value,
    ended_in_words,
    name_rows,
    read_values,
)
from core.errors import Invalid
from credentials.models import Credential, CredentialFormat
from tenants import vault
from verifications.models import Verification
from verifications.present_proof import prover
from verifications.proofs.proof_items import Item, contains_name
from verifications.proofs.selection import Selection
from verifications.wording import Predicate, label_of, predicate_of
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

    number: its place. shown: the names of the attributes that are shown. predicate:
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
    """What an answered request has told: the names of attributes, never values."""

    row: Verification
    at: datetime
    shown: list[str]
    proven: list[Predicate]
    hidden: list[str]


def build_question(number: int, item: Item, cards: list[Any]) -> Question:
    """Return an item as the page asks it.

    cards: the credentials of the wallet that fit. Those that have expired or were
    revoked come last.
    """
    own = [] if item.is_predicate else list(item.attribute_names)
    shown = [*own, *item.companions]
    revoked = Credential.State.REVOKED
    cards = sorted(cards, key=lambda card: card.is_expired or card.state == revoked)
    return Question(
        number,
        [label_of(name) for name in shown],
        predicate_of(item) if item.is_predicate else None,
        # A value that is required must be shown.
        not item.is_predicate and not any(one.value for one in item.restrictions),
        [
            Choice(
                card,
                [one for one in card.values_shown if contains_name(shown, one.name)],
            )
            for card in cards
        ],
    )


def consent_context(verification: Verification) -> dict[str, Any]:
    """Return what the page says of an open request, with the cards that fit.

    The request does not change. The ledger may be read, so this stands outside of
    transactions.

    verification: unsaved for the request of a link (preview_shared_request). `source`
    is the card that answers all of it, if no other card fits anything.
    """
    available = prover.find_available(verification)
    cards = {card.pk: card for _, fitting in available for card in fitting}
    name_rows(list(cards.values()))
    for card in cards.values():
        read_values(card)
    questions = [
        build_question(number, item, [cards[card.pk] for card in fitting])
        for number, (item, fitting) in enumerate(available)
    ]
    can_answer = all(one.choices for one in questions)
    is_one_card = len(cards) == 1 and can_answer
    return {
        "questions": questions,
        "shown": [one for one in questions if not one.predicate],
        "proven": [one for one in questions if one.predicate],
        "hideable": [one for one in questions if one.may_hide and one.choices],
        "source": next(iter(cards.values())) if is_one_card else None,
        "can_answer": can_answer,
        "ended": [] if can_answer else describe_ended(verification),
    }


def describe_ended(verification: Verification) -> list[str]:
    """Say which cards would have answered, had they not been revoked or expired.

    The holder alone reads it. The verifier is told no more than that no card fits.
    """
    ended: list[tuple[Any, bool]] = [*prover.find_ended(verification)]
    name_rows([card for card, _ in ended])
    for card, _ in ended:
        read_values(card)
    return [
        ended_in_words(card)
        for card, is_revoked in ended
        if is_revoked or card.last_day
    ]


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
        raise Invalid("choice_missing", "Choose a credential for each question.")
    return [
        Selection(item.policy_name, card, bool(form.get(f"hide-{number}")))
        for number, (item, card) in enumerate(zip(items, chosen, strict=True))
    ]


def disclosure_of(verification: Verification) -> Disclosure:
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
        # It is answered as a whole.
        revealed = {*(verification.unsealed_proof() or {})}
    hidden, proven = parts.get("unrevealed_attrs", {}), parts.get("predicates", {})
    items = verification.require_proof_request().items
    attributes = [item for item in items if not item.is_predicate]
    return Disclosure(
        verification,
        verification.verified_at or verification.in_state_since,
        [
            *names_in(attributes, revealed),
            *(
                label_of(name)
                for item in items
                for name, referent in item.companions.items()
                if referent in revealed
            ),
        ],
        [
            predicate_of(item)
            for item in items
            if item.is_predicate and revealed.union(proven).issuperset(item.referents)
        ],
        names_in(attributes, set(hidden)),
    )


def names_in(items: Iterable[Item], referents: set[str]) -> list[str]:
    """The names of the attributes that these referents answer, each once.

    An item is answered if all its referents are among them.
    """
    names = {
        normalise_name(name): label_of(name)
        for item in items
        if referents.issuperset(item.referents)
        for name in item.attribute_names
    }
    return list(names.values())
