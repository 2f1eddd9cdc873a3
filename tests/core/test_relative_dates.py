"""The dates of policies that depend on the day of the request."""

from datetime import UTC, date, datetime

import pytest

from core.errors import Invalid
from core.text.relative_dates import (
    GRAMMAR,
    is_relative_date,
    resolve_value,
)
from tests.support.errors import refusal
from tests.support.presentations import attribute, policy_of, predicate
from verifications.proofs import proof_policy


@pytest.mark.parametrize(("day", "text", "number"), [
    (date(2026, 11, 23), "today", 20261123),
    (date(2026, 11, 23), "today+30d", 20261223),
    (date(2026, 11, 23), "today-23d", 20261031),
    (date(2026, 11, 23), "today+0d", 20261123),
    (date(2026, 11, 23), "today-18y", 20081123),
    (date(2026, 11, 23), "today-6m", 20260523),
    (date(2026, 11, 23), "today+2m", 20270123),
    (date(2026, 12, 31), "today+12m", 20271231),
    (date(2026, 1, 31), "today-1m", 20251231),
    (date(2026, 3, 31), "today-1m", 20260228),
    (date(2028, 3, 31), "today-1m", 20280229),
    (date(2026, 8, 31), "today+6m", 20270228),
    (date(2028, 2, 29), "today-18y", 20100228),
    (date(2028, 2, 29), "today-20y", 20080229),
    (date(2028, 2, 28), "today-18y", 20100228),
    (date(2026, 11, 23), "today-999y", 10271123),
    (date(2026, 11, 23), "today+9999m", 28600223),
    (date(2026, 11, 23), "today-99999d", 17530208),
])  # fmt: skip
def test_a_date_is_counted_from_the_day(day, text, number):
    assert is_relative_date(text)
    assert resolve_value(text, day) == number


@pytest.mark.parametrize("text", [
    "", "Today", " today", "today ", "today\n", "today+d", "today30d", "today+30",
    "today+30w", "today+30D", "today + 30d", "today--1d", "today+1d+1d",
    "today-1y6m", "today+1.5y", "today+100000d", "today-10000m", "today-1000y",
    "tomorrow", "today+٣d", "20261123", 20261123, None, True, ["today"],
])  # fmt: skip
def test_nothing_else_is_such_a_date(text):
    assert not is_relative_date(text)


def policy_with(*values):
    items = [predicate(f"item {value}", "<=", value) for value in values]
    return proof_policy.normalise(policy_of(attribute("name"), *items))


def values_of(policy):
    return [item.threshold for item in policy.predicates]


def test_a_policy_keeps_the_text_and_a_request_has_the_number():
    policy = policy_with("today", 18, "19", "today-18y")
    before = datetime(2026, 11, 23, 23, 59, 59, tzinfo=UTC).timestamp()
    resolved = policy.resolve_dates(int(before))
    assert values_of(policy) == ["today", 18, 19, "today-18y"]
    assert values_of(resolved) == [20261123, 18, 19, 20081123]
    next_day = policy.resolve_dates(int(before) + 1)
    assert values_of(next_day) == [20261124, 18, 19, 20081124]
    assert resolved.resolve_dates(int(before) + 1) == resolved


@pytest.mark.parametrize("value", ["today-18", "Today", "today+1000y"])
def test_a_date_that_cannot_be_read_is_refused_with_the_grammar(value):
    refused = refusal(Invalid, policy_with, value)
    assert refused.errors == {"predicates[0].predicateValue": [GRAMMAR]}
