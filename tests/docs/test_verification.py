"""The page about policies: its dates are right, and its example does what it says."""

import json
import re
from datetime import date

import pytest

from core.text.relative_dates import resolve_value
from tests.support.paths import DOCS

PAGE = (DOCS / "policies.md").read_text()


def test_the_dates_are_those_of_the_day():
    rows = re.findall(r"^\| (\d{8}) \| `(.+?)` \|$", PAGE, re.MULTILINE)
    assert len(rows) == 4
    for number, text in rows:
        assert resolve_value(text, date(2026, 11, 23)) == int(number)


@pytest.mark.django_db(transaction=True)
def test_the_example_asks_for_an_adult_with_a_valid_card(faber):
    [example] = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    policy = json.loads(example)
    policy_id = faber.post("/verificationPolicies", policy)["policyId"]
    definition = faber.defines("birthDate", "validUntil")
    cards = {"valid": "29991231", "expired": "20200101"}
    verdicts = {}
    for name, valid_until in cards.items():
        holder = faber.hosts(name)
        values = {"birthDate": "19700101", "validUntil": valid_until}
        holder.receives(faber, definition, values)
        path = f"/verifications/policy/{policy_id}/connections"
        asked = faber.put(f"{path}/{holder.known_as(faber)}")["verificationId"]
        holder.auto_selects()
        verdicts[name] = faber.get(f"/verifications/{asked}")["isValid"]
    assert verdicts == {"valid": True, "expired": False}
