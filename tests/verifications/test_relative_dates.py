"""A policy with a date such as `today-18y`, asked on one day and on the next."""

from datetime import UTC, datetime
from itertools import product
from types import SimpleNamespace

import pytest

from core.text.relative_dates import GRAMMAR
from core.work import network_reads
from tests.support.errors import assert_error, error_of
from tests.support.presentations import attribute, policy_of, predicate
from tests.support.steps import step
from verifications import kiosks
from verifications.models import Kiosk

LAST_SECOND = int(datetime(2026, 11, 23, 23, 59, 59, tzinfo=UTC).timestamp())
ADULT = predicate("birthDate", "<=", "today-18y", policyName="Adult")
POLICY = policy_of(attribute("Who", attributeNames=["name"]), ADULT)
BORN = {"Alice": "20081123", "Bob": "20081124"}


@pytest.fixture
def clock(monkeypatch):
    clock = SimpleNamespace(now=LAST_SECOND)
    monkeypatch.setattr(network_reads, "now", lambda: clock.now)
    return clock


@step
def holders(faber):
    """Alice is 18 on 23 November 2026, and Bob one day later."""
    claims = {"birthDate": {"type": "integer"}}
    definition = faber.defines("name", "birthDate", claims=claims)
    holders = {name: faber.hosts(name) for name in BORN}
    for name, holder in holders.items():
        values = {"name": name, "birthDate": BORN[name]}
        holder.receives(faber, definition, values)
    return holders


@step
def policy_id(faber):
    return faber.post("/verificationPolicies", POLICY)["policyId"]


def ask(faber, holder, policy_id):
    path = f"/verifications/policy/{policy_id}/connections/{holder.known_as(faber)}"
    return faber.put(path)["verificationId"]


def answer(faber, holder, identifier):
    """The verification after the holder's autoSelect."""
    holder.auto_selects()
    return faber.get(f"/verifications/{identifier}")


def threshold_of(verification):
    return verification["policy"]["predicates"][0]["predicateValue"]


def cards_for(holder):
    """How many credentials fit the predicate of the newest request."""
    asked = holder.newest("verifications")["verificationId"]
    items = holder.get(f"/verifications/{asked}/availableCredentials")
    [adult] = [item for item in items if item["policyName"] == "Adult"]
    return len(adult["availableCredentials"])


def test_one_policy_asks_for_the_date_of_each_day(faber, holders, policy_id, clock):
    verdicts = []
    for clock.now in (LAST_SECOND, LAST_SECOND + 1):
        for holder in holders.values():
            asked = ask(faber, holder, policy_id)
            fitting = cards_for(holder)
            seen = answer(faber, holder, asked)
            mine = holder.newest("verifications")
            assert mine["policy"]["predicates"] == seen["policy"]["predicates"]
            verdicts.append((threshold_of(seen), fitting, seen["isValid"]))
    assert verdicts == [
        (20081123, 1, True),
        (20081123, 0, False),  # Bob cannot prove it yet
        (20081124, 1, True),
        (20081124, 1, True),
    ]
    stored = faber.get(f"/verificationPolicies/{policy_id}")
    assert threshold_of({"policy": stored}) == "today-18y"


def test_a_request_keeps_its_date_until_answered(faber, holders, policy_id, clock):
    bob = holders["Bob"]
    asked = ask(faber, bob, policy_id)
    clock.now += 1
    seen = answer(faber, bob, asked)
    assert (threshold_of(seen), seen["isValid"]) == (20081123, False)


def test_each_way_of_asking_and_each_of_a_kiosk_resolves_it(faber, policy_id, clock):
    faber.post("/kiosks", {"name": "Door", "policyId": policy_id})
    asked = [
        faber.asks(faber.hosts(), **POLICY),
        faber.post("/verifications/policy", POLICY),
        faber.put(f"/verifications/policy/{policy_id}", {}),
        faber.post("/verifications", {"verificationDefinitionId": policy_id}),
    ]
    assert [threshold_of(one) for one in asked] == [20081123] * 4
    for clock.now, date in ((LAST_SECOND, 20081123), (LAST_SECOND + 1, 20081124)):
        kiosks.renew_request(Kiosk.objects.get())
        assert threshold_of(faber.get("/verifications")[0]) == date


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_proposal_has_the_date_of_its_day(faber, policy_id, clock, version):
    alice = faber.hosts()
    alice.known_as(faber)
    path = f"/verifications/propose/{alice.known[faber][1]}"
    mine = alice.put(path, POLICY | {"exchangeVersion": version})
    clock.now += 1
    [seen] = faber.get("/verifications")
    assert threshold_of(mine) == threshold_of(seen) == 20081123
    [compared] = seen["proposal"]["proposedPredicates"]
    assert compared["threshold"] == 20081123
    where = f"{policy_id}/connections/{alice.known_as(faber)}"
    answered = faber.put(f"/verifications/proposal/{where}")
    assert threshold_of(answered) == 20081124


def test_samples_and_the_oldest_clients_get_the_days_number(faber, policy_id):
    years = ("1900", "9999")
    samples = [{"values": {"name": "A", "birthDate": year + "0101"}} for year in years]
    for policy in ({"policyId": policy_id}, POLICY):
        body = policy | {"credentials": samples}
        tried = faber.post("/verificationPolicies/try", body)
        fits = [one["satisfies"] for one in tried["items"][1]["credentials"]]
        assert fits == [True, False]
    path = f"/definitions/verifications/{policy_id}"
    requested = faber.get(path)["proofRequest"]["requestedPredicates"]["Adult"]
    assert type(requested["predicateValue"]) is int
    assert requested["p_value"] == requested["predicateValue"]


POSTED = "/verificationPolicies", "/verificationPolicies/try", "/verifications/policy"
NO_DATES = "today-18", "today+1w", "Today", "today-1000y"


def comparing_with(value):
    return POLICY | {"predicates": [ADULT | {"predicateValue": value}]}


def test_what_is_no_date_is_refused_but_numbers_are_read(faber, subtests):
    for path, value in product(POSTED, NO_DATES):
        with subtests.test(f"{path} {value}"):
            error = error_of(faber.post, path, comparing_with(value))
            assert_error(error, 400, "invalid_request")
            assert error.body["errors"] == {"predicates[0].predicateValue": [GRAMMAR]}
    for given, stored in ((18, 18), ("18", 18), ("-1", -1), (18.0, 18), ("18.0", 18)):
        made = faber.post("/verificationPolicies", comparing_with(given))
        assert threshold_of({"policy": made}) == stored
