"""What a link offers or asks: names and conditions, never a value of a credential."""

from dataclasses import dataclass, field

from agency.holders.links.links import Link
from agency.words.asking import (
    ask_in_words,
    card_asked,
    conditions_asked,
    definition_ids,
    labels_asked,
)
from agency.words.cards import Card, definitions_of, draw_card
from credentials.models import Credential
from verifications.models import Verification
from verifications.wording import Predicate

MAX_LISTED = 12  # the rest is folded


@dataclass(frozen=True)
class Contents:
    """card: that is offered, or that answers alone, without values.

    sentence: what is asked, or "" if that is too much for one. shown: labels of
    attributes.
    """

    card: Card | None = None
    sentence: str = ""
    shown: list[str] = field(default_factory=list)
    proven: list[Predicate] = field(default_factory=list)
    goal: str = ""

    @property
    def listed(self) -> list[str]:
        return self.shown[:MAX_LISTED]

    @property
    def folded(self) -> list[str]:
        return self.shown[MAX_LISTED:]


def contents_of(link: Link) -> Contents:
    """Return what a link offers or asks, with labels in the active language.

    Of an invitation, and once the exchange was deleted, only the goal, if it has one.
    A proof request is decrypted; 409 `wrong_state` without one.
    """
    goal = ""
    if link.connection:
        invitation = link.connection.out_of_band or link.connection.invitation
        goal = str(invitation.get("goal") or "")
    if isinstance(link.exchange, Credential):
        return Contents(draw_card(link.exchange.definition), goal=goal)
    if isinstance(link.exchange, Verification):
        items = link.exchange.require_proof_request().items
        asked = link.exchange
        known = definitions_of(asked.tenant_id, definition_ids(items))
        day = asked.created_at.date()
        return Contents(
            card_asked(items, known),
            sentence=ask_in_words(items, known, day),
            shown=labels_asked(items, known),
            proven=conditions_asked(items, known),
            goal=goal,
        )
    return Contents(goal=goal)
