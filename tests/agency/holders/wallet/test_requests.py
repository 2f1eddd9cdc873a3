"""The consent page of a proof request, and the history of what was shown."""

from datetime import date

import pytest

from agency.holders.wallet import holdings
from credentials.models import Credential
from tests.agency.holders.wallet.conftest import (
    VALUES,
    newest_of,
    opens_wallet,
    refuses,
)
from tests.support.policies import attribute, predicate
from verifications.models import Verification

pytestmark = pytest.mark.django_db(transaction=True)
NAME = attribute("name", policyName="Who")
OLD = predicate("year", "<=", 2024)


@pytest.fixture
def ask(faber, alice, card):
    """Ask Alice, and return the page of the request."""

    def ask(**policy):
        faber.asks(alice, **({"attributes": [NAME], "predicates": [OLD]} | policy))
        return f"/w/requests/{newest_of(alice, Verification).pk}"

    return ask


def card_of(holder):
    return str(newest_of(holder, Credential).pk)


def send(wallet, page, card, **fields):
    form = {"action": "accept", "card-0": card, "card-1": card}
    return wallet.post(page, form | fields)


def test_the_page_says_what_is_shown_and_what_is_only_proven(wallet, ask, alice):
    page = ask()
    inbox = wallet.get("/w/inbox").text
    assert page in inbox and "Question" in inbox
    shown = wallet.get(page).text
    assert "Nothing is shown before you agree." in shown
    assert "Balthazar-4711" in shown and "at most 2024" in shown
    assert "2021" not in shown.partition("This is only proven")[2]
    # One card that fits is no choice.
    assert "radio" not in shown and shown.count("From your card") == 1
    card = f'type="hidden" name="card-0" value="{card_of(alice)}"'
    assert shown.count(card) == 1


def test_an_answer_is_judged_once_and_says_who_got_what(wallet, ask, faber, alice):
    page = ask()
    card = card_of(alice)
    assert send(wallet, page, card).url == page
    seen = faber.get("/verifications")[0]
    assert seen["isValid"] is True
    assert seen["proof"]["Who"]["value"] == "Balthazar-4711"
    assert page not in wallet.get("/w/inbox").text
    told = wallet.get(page).text
    assert "was sent and accepted" in told
    assert f"Your answer to <bdi>{faber.tenant.name}</bdi>" in told
    shown, _, proven = told.partition("You showed")[2].partition("You only proved")
    assert "<bdi>name</bdi>" in shown and "at most 2024" in proven
    assert "Balthazar" not in told and 'href="/w/"' in told
    history = wallet.get("/w/history").text
    assert f"<bdi>{faber.tenant.name}</bdi>" in history
    shown = history.partition("You showed")[2].partition("You only proved")[0]
    assert "<bdi>name</bdi>" in shown and "year" not in shown
    assert "<bdi>year</bdi>: <bdi>at most 2024</bdi>" in history
    assert "Balthazar" not in history and "2021" not in history
    # Sent again, it does nothing.
    for again in (send(wallet, page, card), wallet.post(page, {"action": "decline"})):
        refuses(again, 409, "wrong_state")
    assert alice.newest("verifications")["state"] == "Accepted"


def test_the_end_of_a_card_is_a_day(faber, alice, wallet, monkeypatch):
    member = faber.defines("name", "validUntil", name="Member")
    alice.receives(faber, member, {"name": "Ada", "validUntil": "20271130"})
    page = wallet.get("/w/", headers={"Accept-Language": "de"}).text
    assert "Gültig bis" in page and "30. November 2027" in page
    for today, is_over in ((date(2027, 11, 30), False), (date(2027, 12, 1), True)):
        monkeypatch.setattr(holdings.timezone, "localdate", lambda day=today: day)
        assert ("Expired" in wallet.get("/w/").text) is is_over


def test_a_card_that_is_over_is_not_the_first_choice(faber, alice, wallet, ask):
    member = faber.defines("name", "validUntil", name="Member")
    for until in ("20200131", "29991231", "20210131"):
        alice.receives(faber, member, {"name": until, "validUntil": until})
    asked = {"attributes": [{"policyName": "validUntil"}], "predicates": []}
    choices = wallet.get(ask(**asked)).text.partition('type="radio"')[2]
    assert choices.index("31 Dec 2999") < choices.index("31 Jan 2020")
    assert choices.count("Expired") == 2


def test_a_hidden_attribute_is_proven_and_not_shown(wallet, ask, faber, alice):
    page = ask()
    send(wallet, page, card_of(alice), **{"hide-0": "yes"})
    told = faber.get("/verifications")[0]
    assert "Balthazar" not in str(told["proof"])
    history = wallet.get("/w/history").text
    assert "that you have <bdi>name</bdi>" in history


def test_a_value_that_is_required_cannot_be_hidden(wallet, ask):
    value = {"value": {"attributeName": "name", "attributeValue": "Balthazar-4711"}}
    item = NAME | {"restrictions": [value]}
    page = wallet.get(ask(attributes=[item], predicates=[])).text
    assert "hide-0" not in page and "card-0" in page


def test_of_several_cards_the_holder_chooses_one(wallet, ask, faber, alice):
    first = card_of(alice)
    alice.receives(faber, faber.degree, VALUES | {"name": "Other"})
    page = ask()
    shown = wallet.get(page).text
    assert "Balthazar-4711" in shown and "Other" in shown
    assert shown.count('name="card-0"') == 2
    second = card_of(alice)
    assert first != second
    send(wallet, page, second)
    assert faber.get("/verifications")[0]["proof"]["Who"]["value"] == "Other"


def test_without_a_card_that_fits_nothing_can_be_sent(wallet, ask, alice):
    page = ask(attributes=[{"policyName": "shoe size"}], predicates=[])
    shown = wallet.get(page).text
    assert "No card in your wallet answers this." in shown
    assert 'value="accept"' not in shown and "Show less" not in shown
    assert shown.count('value="decline"') == shown.count('name="reason"') == 1
    refuses(wallet.post(page, {"action": "accept"}), 400, "choice_missing")
    assert alice.newest("verifications")["state"] == "Requested"


def test_the_card_of_another_wallet_is_refused(wallet, ask, faber, alice):
    bob = faber.hosts("Bob")
    bob.receives(faber, faber.degree, VALUES)
    refuses(send(wallet, ask(), card_of(bob)), 400, "unknown_credential")
    assert alice.newest("verifications")["state"] == "Requested"


def test_declining_shows_nothing_and_says_why(wallet, ask, faber):
    page = ask()
    # The verifier gets it without the NUL.
    wallet.post(page, {"action": "decline", "reason": "Too\x00 much"})
    assert "Nothing was shown." in wallet.get(page).text
    told = faber.get("/verifications")[0]
    assert (told["state"], told["reason"]) == ("Rejected", "Too much")
    history = wallet.get("/w/history").text
    assert "You declined this question. Nothing was shown." in history
    assert "You showed" not in history


def test_a_value_shown_for_a_restriction_is_in_the_history(wallet, ask, alice):
    value = {"value": {"attributeName": "name", "attributeValue": "Balthazar-4711"}}
    page = ask(attributes=[], predicates=[OLD | {"restrictions": [value]}])
    assert "Shown with it" in wallet.get(page).text
    send(wallet, page, card_of(alice))
    shown = wallet.get("/w/history").text.partition("You showed")[2]
    assert "<bdi>name</bdi>" in shown


def test_other_wallets_requests_and_the_verifiers_row_are_hidden(wallet, ask, faber):
    page = ask()
    bob = opens_wallet(faber.hosts("Bob"))
    for path in (page, f"{page}/part"):
        assert bob.get(path).status_code == 404
    assert bob.post(page, {"action": "decline"}).status_code == 404
    assert "shown nothing" in bob.get("/w/history").text
    row = Verification.objects.get(role="verifier")
    assert wallet.get(f"/w/requests/{row.pk}").status_code == 404


def test_the_verdict_is_read_again_until_it_is_there(wallet, ask, alice):
    page = ask()
    send(wallet, page, card_of(alice))
    rows = Verification.objects.filter(role="prover")
    rows.update(is_valid=None, verified_at=None)
    assert "data-watched" in wallet.get(page).text
    seen = {"seen": "Accepted None"}
    assert wallet.get(f"{page}/part", seen).status_code == 204
    rows.update(is_valid=False, verified_at=rows[0].created_at)
    told = wallet.get(f"{page}/part", seen).text
    assert "was not accepted" in told and "data-watched" not in told
