"""What templates call to draw cards of rows that their views have read."""

from collections.abc import Iterable
from typing import Any

from django.template import Library

from agency.words.cards import (
    BACKGROUND,
    Card,
    definitions_of,
    draw_card,
    place_entries,
)
from credentials.models import Credential, CredentialDefinition

register = Library()


@register.simple_tag
def draw_offer(definition: CredentialDefinition, values: Iterable[Any]) -> Card:
    """values: each with its name and text."""
    return draw_card(definition, {value.name: value.text for value in values})


@register.simple_tag
def draw_cards(held: Any) -> str:
    """Add `card` to held credentials, one or several, with `title` and `peer`.

    One query for all. Of an issuer elsewhere, a card has no design.
    """
    rows: list[Any] = [held] if isinstance(held, Credential) else list(held)
    if not rows:
        return ""
    known = definitions_of(rows[0].tenant_id, [row.definition_id for row in rows])
    for row in rows:
        values = row.unsealed_values() or {}
        if found := known.get(row.definition_id):
            row.card = draw_card(found, values)
        else:
            row.card = place_entries(
                {}, list(values), values,
                name=row.title, issuer=row.peer, background=BACKGROUND,
            )  # fmt: skip
    return ""
