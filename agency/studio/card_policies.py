"""The simple view of a policy: what one card must show or prove, an attribute a line.

A card is a credential, as people call it.

It becomes the draft that the builder has. The values that are shown are one item, so
that they are of one credential. A comparison is an item of its own.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from django.http import QueryDict

from agency.studio.policy_drafts import (
    MAX_DRAFT_NAMES,
    SHOW,
    TWIN,
    VALID_NOW,
    Draft,
    DraftItem,
)
from core.text.days import parse_day
from core.text.relative_dates import is_relative_date, read_offset
from credentials.models import CredentialDefinition
from credentials.models.definition import BOOLEAN, DATE, INTEGER
from credentials.twins import find_twin
from tenants.models import Tenant
from verifications.wording import is_date_name, is_validity
from wallets.anoncreds import normalise_name

SKIP, TODAY, DAYS, YEARS, FROM, TO = "", "today", "days", "years", ">=", "<="
WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")
COUNT = re.compile(r"[0-9]{1,3}")
MAX_ITEM_NAME = 256


class Option(NamedTuple):
    """What is asked of an attribute. takes: what its value is, "" for none."""

    label: str
    takes: str = ""


SHOWN_OR_NOT = {SHOW: Option("Show it"), SKIP: Option("Do not ask")}
OPTIONS = {
    "": SHOWN_OR_NOT,
    BOOLEAN: SHOWN_OR_NOT,
    INTEGER: SHOWN_OR_NOT
    | {
        FROM: Option("Only prove: at least …", "a whole number"),
        TO: Option("Only prove: at most …", "a whole number"),
    },
    DATE: SHOWN_OR_NOT
    | {
        TODAY: Option("Only prove: today or any later day"),
        DAYS: Option("Only prove: at least … days from now", "a number up to 999"),
        YEARS: Option("Only prove: at least … years ago", "a number up to 999"),
        FROM: Option("Only prove: from … on", "a day such as 2026-01-31"),
        TO: Option("Only prove: until …", "a day such as 2026-01-31"),
    },
}


class NotOneCard(Exception):
    """The policy asks for what the simple view does not have. The text says why."""


@dataclass
class CardLine:
    """An attribute, and what is asked of it. kind: INTEGER, DATE or "" for a text."""

    name: str
    kind: str
    chosen: str = SHOW
    value: str = ""

    @property
    def options(self) -> dict[str, Option]:
        return OPTIONS[self.kind]

    @property
    def value_error(self) -> str:
        """What is wrong with the value, in words."""
        takes = self.options[self.chosen].takes
        return f"Give {takes}." if takes and not self._is_complete() else ""

    def _is_complete(self) -> bool:
        value = self.value.strip()
        if self.chosen in (DAYS, YEARS):
            return bool(COUNT.fullmatch(value))
        if self.kind == DATE:
            return parse_day(value.replace("-", "")) is not None
        return bool(WHOLE_NUMBER.fullmatch(value))

    def to_predicate(self) -> tuple[str, str]:
        """The type of the predicate and its value."""
        value = self.value.strip()
        if self.chosen == TODAY:
            return FROM, "today"
        if self.chosen == DAYS:
            return FROM, f"today+{value}d"
        if self.chosen == YEARS:
            return TO, f"today-{value}y"
        return self.chosen, value.replace("-", "") if self.kind == DATE else value

    def take_predicate(self, kind: str, number: str) -> None:
        """Take over the type of a predicate and its value.

        Raises NotOneCard unless to_predicate() would give the same again.
        """
        if number == "today":
            self.chosen = TODAY
        elif is_relative_date(number):
            offset, unit = read_offset(number)
            self.chosen, self.value = YEARS if unit == "y" else DAYS, str(abs(offset))
        else:
            self.chosen, self.value = kind, number
            if self.kind == DATE and (day := parse_day(number)):
                self.value = day.isoformat()
        is_known = self.chosen in self.options and not self.value_error
        if not is_known or self.to_predicate() != (kind, number):
            raise NotOneCard(f"it compares {self.name} in another way")


@dataclass
class CardPolicy:
    """What is asked of one definition's credentials. or_twin: or of its twin's."""

    definition: CredentialDefinition
    name: str
    version: str = "1.0"
    valid_now: bool = True
    or_twin: bool = False
    lines: list[CardLine] = field(default_factory=list)

    @property
    def may_have_twin(self) -> bool:
        """Whether the page asks about the twin."""
        return self.or_twin or find_twin(self.definition) is not None

    def find_errors(self) -> dict[str, list[str]]:
        """Sentences by the name of the attribute."""
        found = {
            line.name: [line.value_error] for line in self.lines if line.value_error
        }
        if not any(line.chosen for line in self.lines):
            found[""] = ["Ask for at least one attribute."]
        return found

    def to_draft(self) -> Draft:
        only_of = {"definition": self.definition.definition_id}
        only_of |= {TWIN: "on"} if self.or_twin else {}
        shown = [line.name for line in self.lines if line.chosen == SHOW]
        items = []
        if shown:
            is_short = len(", ".join(shown)) <= MAX_ITEM_NAME
            # Without a name of its own, it is called by those of its attributes.
            schema = self.definition.schema
            called = "" if is_short else f"{schema.name}: {len(shown)} values"
            items.append(DraftItem(called=called, names=shown, any_of=[dict(only_of)]))
        for line in self.lines:
            if line.chosen not in (SHOW, SKIP):
                kind, number = line.to_predicate()
                item = DraftItem(kind, "", number, [line.name], [dict(only_of)])
                items.append(item)
        requirement = dict(VALID_NOW) if self.valid_now else {}
        return Draft(self.name, self.version, requirement, items)


def card_of_definition(definition: CredentialDefinition) -> CardPolicy:
    """The proposed policy: show each attribute, and prove that the card has not ended.

    Attributes above MAX_DRAFT_NAMES, which one item does not hold, are not asked for.
    """
    name = f"Check of {definition.schema.name}"
    card = CardPolicy(
        definition,
        name,
        valid_now=definition.supports_revocation,
        lines=lines_of(definition),
    )
    for number, line in enumerate(card.lines):
        if line.kind == DATE and is_validity(line.name):
            line.chosen = TODAY
        elif number >= MAX_DRAFT_NAMES:
            line.chosen = SKIP
    return card


def lines_of(definition: CredentialDefinition) -> list[CardLine]:
    """A line for each attribute, of its declared type.

    A number that is a date by its name is a date: definitions could not declare dates
    at first.
    """
    lines = []
    for name in definition.schema.attribute_names:
        kind = definition.type_of(name)
        if kind == INTEGER and is_date_name(name):
            kind = DATE
        lines.append(CardLine(name, kind))
    return lines


def read_card(given: QueryDict, definition: CredentialDefinition) -> CardPolicy:
    """The simple view in the fields of the page."""
    card = CardPolicy(
        definition,
        given.get("name", ""),
        given.get("version", ""),
        "valid_now" in given,
        "or_twin" in given,
        lines_of(definition),
    )
    for number, line in enumerate(card.lines):
        chosen = given.get(f"option_{number}", SKIP)
        line.chosen = chosen if chosen in line.options else SKIP
        line.value = given.get(f"value_{number}", "")[:20]
    return card


def card_of_draft(draft: Draft, tenant: Tenant) -> CardPolicy:
    """The same policy in the simple view.

    Raises NotOneCard unless its to_draft() would give the same items again.
    """
    items = [item for item in draft.items if not item.is_blank]
    if draft.requirement not in ({}, VALID_NOW):
        raise NotOneCard("it asks about revocation in another way")
    definition, or_twin = find_card(items, tenant)
    card = CardPolicy(
        definition,
        draft.name,
        draft.version,
        draft.valid_now,
        or_twin,
        lines_of(definition),
    )
    lines = {normalise_name(line.name): line for line in card.lines}
    for line in card.lines:
        line.chosen = SKIP
    if len([item for item in items if item.kind == SHOW]) > 1:
        raise NotOneCard("its values may come from several cards")
    for item in items:
        take_over(item, lines)
    if names_of_items(card.to_draft().items) != names_of_items(items):
        raise NotOneCard("an item has a name or an order of its own")
    return card


def find_card(
    items: list[DraftItem], tenant: Tenant
) -> tuple[CredentialDefinition, bool]:
    """The only definition to which all items are restricted, and whether its twin is
    allowed too. Raises NotOneCard.
    """
    restrictions = [
        {part: text for part, text in alternative.items() if text.strip()}
        for item in items
        for alternative in item.any_of or [{}]
    ]
    first = restrictions[0] if restrictions else {}
    if not first or any(one != first for one in restrictions):
        raise NotOneCard("it does not ask for one kind of card only")
    if first.keys() - {TWIN} != {"definition"} or any(item.more for item in items):
        raise NotOneCard("it has other conditions")
    rows = CredentialDefinition.active_of(tenant)
    found = rows.filter(definition_id=first["definition"]).first()
    if not found:
        raise NotOneCard("it asks for a card that you do not issue")
    return found, TWIN in first


def take_over(item: DraftItem, lines: dict[str, CardLine]) -> None:
    """Set the lines of an item. Raises NotOneCard."""
    for name in item.given_names:
        line = lines.pop(normalise_name(name), None)
        if not line or line.name != name:
            raise NotOneCard(f"it asks for {name} twice, or the card does not have it")
        if item.kind == SHOW:
            line.chosen = SHOW
        else:
            line.take_predicate(item.kind, item.number.strip())


def names_of_items(items: list[DraftItem]) -> list[tuple[str, list[str]]]:
    return [(str(item.body()["policyName"]), item.given_names) for item in items]
