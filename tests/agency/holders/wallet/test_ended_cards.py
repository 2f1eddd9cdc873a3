"""A holder is told which cards have ended; the verifier only that no card fits."""

import pytest
from django.utils import timezone

from agency.holders.wallet import holdings
from agency.holders.wallet.models import PersonalLink
from credentials.models import Credential
from tests.agency.holders.wallet.conftest import newest_of, opens_wallet
from tests.support import queues
from tests.support.policies import attribute, predicate
from tests.support.steps import step
from verifications.models import Verification

pytestmark = pytest.mark.django_db(transaction=True)
NOW = {"validNow": True}
ITEMS = [attribute("name", policyName="Who"), attribute("role", policyName="Role")]
VALID = predicate("validUntil", ">=", "today", policyName="Still valid")
PAST, FUTURE = "20200229", "29991231"
EXPIRED = "Your Member card expired: its last day was 29 Feb 2020."


@step
def member(faber):
    made = faber.defines(
        "name", "role", "validUntil", name="Member", supportRevocation=True
    )
    queues.sweep()
    return made


def hold(faber, alice, member, until=FUTURE):
    values = {"name": "Alice", "role": "Chair", "validUntil": until}
    alice.receives(faber, member, values)
    return Credential.objects.filter(role="issuer").latest("pk")


def revoke(faber, issued):
    faber.call("delete", f"/credentials/{issued.pk}")
    day = timezone.localtime(newest_card().updated_at)
    return (
        f"Your Member card was cancelled by {faber.tenant.name} on "
        f"{day.day} {day:%b %Y}."
    )


def newest_card():
    return Credential.objects.filter(role="holder").latest("pk")


def ask(faber, alice, *predicates):
    faber.asks(
        alice, attributes=ITEMS, predicates=predicates, revocationRequirement=NOW
    )
    return f"/w/requests/{newest_of(alice, Verification).pk}"


def test_a_question_names_the_card_that_was_revoked_once(wallet, faber, alice, member):
    said = revoke(faber, hold(faber, alice, member))
    page = ask(faber, alice)
    shown = wallet.get(page).text
    assert shown.count(said) == 1
    assert "No card in your wallet answers this." not in shown
    wallet.post(page, {"action": "decline", "reason": "no_card_fits"})
    told = faber.get("/verifications")[0]
    assert told["problem"] == "no_card_fits" and "cancelled" not in str(told)


def test_a_question_names_the_card_that_has_expired(wallet, faber, alice, member):
    hold(faber, alice, member, PAST)
    shown = wallet.get(ask(faber, alice, VALID)).text
    assert shown.count(EXPIRED) == 1


def test_who_is_too_young_reads_which_age_is_asked_for(wallet, faber, alice):
    """The holder alone. The verifier learns no more than that no card fits."""
    junior = faber.defines("name", "born", name="Junior")
    alice.receives(faber, junior, {"name": "Alice", "born": "20200229"})
    adult = predicate("born", "<=", "today-18y", policyName="Adult")
    faber.asks(alice, attributes=ITEMS[:1], predicates=[adult])
    page = f"/w/requests/{newest_of(alice, Verification).pk}"
    age = "You need to be 18 or older: \u2068born\u2069: on "
    shown = wallet.get(page).text
    assert shown.count(age) == 1
    assert "No card in your wallet answers this." not in shown
    wallet.post(page, {"action": "decline", "reason": "no_card_fits"})
    after = wallet.get(page).text
    said = "You told them that no card of yours fits. Nothing was shown."
    assert said in after and after.count(age) == 1
    assert said in wallet.get("/w/history").text
    told = faber.get("/verifications")[0]
    assert told["problem"] == "no_card_fits" and "born:" not in str(told)


def test_who_has_a_value_too_small_reads_what_is_asked_for(
    wallet, faber, alice, degree
):
    alice.receives(faber, degree, {"name": "Alice", "year": "1999"})
    faber.asks(alice, attributes=[], predicates=[predicate("year", ">=", 2020)])
    path = f"/w/requests/{newest_of(alice, Verification).pk}"
    said = "Your Degree card does not meet this: \u2068year\u2069: at least 2020."
    assert said in wallet.get(path).text
    alice.receives(faber, degree, {"name": "Alice", "year": "2021"})
    assert "does not meet" not in wallet.get(path).text, "another card does"


def test_a_card_of_another_kind_is_not_named(wallet, faber, alice, member, degree):
    alice.receives(faber, degree, {"name": "Alice", "year": "1999"})
    shown = wallet.get(ask(faber, alice)).text
    assert "No card in your wallet answers this." in shown
    assert "cancelled" not in shown and "expired" not in shown


def test_the_cards_tell_it_once(wallet, faber, alice, member):
    first = hold(faber, alice, member)
    assert "cancelled" not in wallet.get("/w/").text
    said = revoke(faber, first)
    assert wallet.head("/w/").status_code == 200
    assert wallet.get("/w/").text.count(said) == 1
    again = wallet.get("/w/").text
    assert said not in again and "Cancelled" in again
    PersonalLink.objects.update(told_at=timezone.now().replace(year=2020, month=1))
    hold(faber, alice, member, PAST)
    both = wallet.get("/w/").text
    assert said in both and EXPIRED in both
    assert "last day" not in wallet.get("/w/").text


def test_cards_behind_the_first_page_are_told_of_once_too(
    wallet, faber, alice, member, monkeypatch
):
    monkeypatch.setattr(holdings, "MAX_SHOWN", 1)
    oldest = hold(faber, alice, member)
    hold(faber, alice, member, PAST)
    hold(faber, alice, member)
    assert "cancelled" not in wallet.get("/w/").text
    faber.call("delete", f"/credentials/{oldest.pk}")
    first = wallet.get("/w/").text
    assert first.count("Your Member card was cancelled") == 1 and EXPIRED not in first
    again, older = wallet.get("/w/").text, wallet.get(next_page(first)).text
    assert "was cancelled" not in again + older
    PersonalLink.objects.update(told_at=timezone.now().replace(year=2020, month=1))
    both = wallet.get("/w/").text
    assert "was cancelled" in both and both.count(EXPIRED) == 1
    assert EXPIRED not in wallet.get("/w/").text


def next_page(page):
    return "/w/?before=" + page.partition("?before=")[2].partition('"')[0]


def test_what_ended_before_a_link_was_made_is_told_once(faber, alice, member):
    said = revoke(faber, hold(faber, alice, member))
    assert opens_wallet(alice).get("/w/").text.count(said) == 1
    with_another_link = opens_wallet(alice).get("/w/").text
    assert said not in with_another_link and "Cancelled" in with_another_link
