"""A personal link and a PIN open a wallet, and nothing else does."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from agency.server.web import is_heavy
from agency.web_wallet import pins, sessions, tasks
from agency.web_wallet.models import UNOPENED_FOR, PersonalLink, PinTry, WalletSession
from tenants.models import AuditEntry, Tenant
from tests.agency.web_wallet.conftest import (
    PIN,
    VALUES,
    link_of,
    opens_wallet,
    refuses,
    wallet_of,
)
from tests.support.erasing import worker_erases
from tests.support.people import ApiError

pytestmark = pytest.mark.django_db(transaction=True)


def visit(path, **address):
    browser = Client(headers={"Accept-Language": "en"}, **address)
    browser.get(path)
    return browser


def give(browser, pin):
    return browser.post("/w/pin", {"pin": pin})


def age(model, field, by):
    for row in model.objects.all():
        model.objects.filter(pk=row.pk).update(**{field: getattr(row, field) - by})


def test_the_token_is_in_no_address_after_the_first(alice):
    for made_up in ("agw_x", "agw_" + "0" * 38, "x" * 300):
        assert Client().get(f"/w/{made_up}").status_code == 404
    path = link_of(alice)
    browser = Client()
    answer = browser.get(path)
    assert answer.url == "/w/pin" and answer["Referrer-Policy"] == "no-referrer"
    cookie = browser.cookies["agency_wallet_link"]
    assert cookie["httponly"] and cookie["path"] == "/w/"
    assert cookie["samesite"] == "Lax"
    assert path.rpartition("/")[2] not in browser.get("/w/pin").text
    assert path.rpartition("/")[2] not in str(PersonalLink.objects.values())
    # Looking at it has used nothing up.
    assert "Choose a PIN" in visit(path).get("/w/pin").text


def opened_both(alice, faber):
    """A browser that shows Alice's wallet, and the path of Bob's link."""
    browser = opens_wallet(alice)
    bob = link_of(faber.hosts("Bob"))
    opens_wallet(faber, bob)
    return browser, bob


def test_another_link_asks_before_it_takes_the_place_of_the_wallet(alice, faber):
    browser, bob = opened_both(alice, faber)
    known = browser.cookies[sessions.LINK_COOKIE].value
    assert browser.get(bob).url == "/w/switch"
    asked = browser.get("/w/switch").text
    assert "the wallet of <bdi>Alice</bdi>" in asked and "Nothing is lost" in asked
    assert bob.rpartition("/")[2] not in asked and "Bob" not in asked
    assert '<form method="post" action="/w/switch">' in asked
    assert re.search('<a [^>]*href="/w/">Stay</a>', asked)
    assert browser.cookies[sessions.LINK_COOKIE].value == known
    assert "<bdi>Alice</bdi>" in browser.get("/w/").text, "who stays"
    assert browser.post("/w/switch").url == "/w/pin"
    assert browser.cookies[sessions.LINK_COOKIE].value == bob.rpartition("/")[2]
    assert give(browser, PIN).url == "/w/"
    assert "<bdi>Bob</bdi>" in browser.get("/w/").text
    # And back, by its own link.
    assert browser.get(f"/w/{known}").url == "/w/switch"
    browser.post("/w/switch")
    give(browser, PIN)
    assert "<bdi>Alice</bdi>" in browser.get("/w/").text
    age(WalletSession, "used_at", sessions.REST)
    browser.get(bob)
    asked = browser.get("/w/switch").text
    assert "knows a wallet at <bdi>Faber" in asked, "without a session it has no name"
    assert "Alice" not in asked


def test_nothing_is_asked_where_no_wallet_would_be_replaced(alice, faber):
    browser, bob = opened_both(alice, faber)
    own = f"/w/{browser.cookies[sessions.LINK_COOKIE].value}"
    assert browser.get(own).url == "/w/pin"
    assert browser.get("/w/switch").url == "/w/"
    browser.get(bob)
    link_of(alice)  # the former link is replaced
    assert browser.get("/w/switch").url == "/w/pin"
    fresh = visit(link_of(faber.hosts("Carol")))  # it has no PIN yet
    assert fresh.get(bob).url == "/w/pin"


def test_switching_needs_the_token_of_the_form(alice, faber):
    browser, bob = opened_both(alice, faber)
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = browser.cookies
    strict.get(bob)
    assert strict.post("/w/switch").status_code == 403
    assert strict.cookies[sessions.LINK_COOKIE].value != bob.rpartition("/")[2]


@pytest.mark.parametrize(
    ("module", "step"),
    [(pins, "choose_pin"), (pins, "check_pin"), (sessions, "begin_session")],
    ids=["first PIN", "PIN", "session"],
)
def test_a_link_replaced_meanwhile_is_gone(alice, monkeypatch, module, step):
    """Comparing a PIN takes a while."""
    is_first = step == "choose_pin"
    browser = visit(link_of(alice)) if is_first else opens_wallet(alice)
    real = getattr(module, step)

    def replaced(*arguments):
        link_of(alice)
        return real(*arguments)

    monkeypatch.setattr(module, step, replaced)
    refuses(give(browser, PIN), 404, "wallet_link_gone")


def test_the_pin_leads_to_what_waits_else_to_the_cards(faber, alice, degree):
    path = link_of(alice)
    assert give(visit(path), PIN).url == "/w/"
    faber.offers(alice, degree, VALUES)
    assert give(visit(path), PIN).url == "/w/inbox"
    alice.accepts_offer()
    assert give(visit(path), PIN).url == "/w/"
    faber.asks(alice, attributes=[{"policyName": "name"}])
    assert give(visit(path), PIN).url == "/w/inbox"


def test_the_first_opening_chooses_the_pin_and_later_ones_ask_for_it(alice):
    path = link_of(alice)
    field = re.compile(r'<input id="pin" name="pin" type="(\w+)"')
    assert field.findall(visit(path).get("/w/pin").text) == ["text"]
    first = opens_wallet(alice, path)
    assert first.get("/w/").status_code == 200
    assert first.cookies["agency_wallet"]["httponly"]
    assert first.cookies["agency_wallet"]["path"] == "/w/"
    assert "agency_session" not in first.cookies
    second = visit(path)
    assert second.get("/w/").url == "/w/pin"
    asked = second.get("/w/pin").text
    assert "Enter your PIN" in asked and field.findall(asked) == ["password"]
    assert give(second, PIN).url == "/w/"
    assert "Your cards" in second.get("/w/").text
    assert PIN not in str(PersonalLink.objects.values())
    actions = AuditEntry.objects.values_list("action", flat=True)
    assert "wallet.link_opened" in actions


def test_who_comes_second_does_not_choose(alice):
    path = link_of(alice)
    first, second = visit(path), visit(path)
    give(first, PIN)
    refuses(give(second, "715203"), 403, "wrong_pin")
    with pytest.raises(Exception, match="chosen before"):
        pins.choose_pin(PersonalLink.objects.get(), "715203", "192.0.2.1")


def test_a_pin_that_is_guessed_at_once_is_refused(alice):
    browser = visit(link_of(alice))
    guessed = ["", "12345", "000000", "123456", "987654", "28061x", "1" * 13]
    for pin in (*guessed, "٢٨٠٦١٥"):
        refuses(give(browser, pin), 400, "pin_not_usable")
        assert PersonalLink.objects.get().pin == "", pin


def test_the_link_is_remembered_once_the_pin_was_given(alice):
    path = link_of(alice)
    browser = visit(path)
    link = browser.cookies[sessions.LINK_COOKIE]
    assert link["max-age"] == ""
    give(browser, PIN)
    kept = browser.cookies[sessions.LINK_COOKIE]
    days = kept["max-age"] / 24 / 3600
    assert kept.value == link.value and days == sessions.REMEMBERED.days
    assert browser.cookies[sessions.SESSION_COOKIE]["max-age"] == ""


def test_signing_out_asks_first_and_forgets_the_wallet_here(alice):
    browser = opens_wallet(alice)
    stolen = browser.cookies[sessions.SESSION_COOKIE].value
    asked = browser.get("/w/leave").text
    assert "Nothing is deleted" in asked and "cannot be undone" in asked
    assert browser.get("/w/").status_code == 200
    assert browser.post("/w/leave").url == "/w/left"
    assert not any(browser.cookies[name].value for name in sessions.PATHS)
    assert not WalletSession.objects.exists()
    assert browser.get("/w/leave").url == browser.get("/w/pin").url == "/w/left"
    assert "You are signed out" in browser.get("/w/left").text
    browser.cookies[sessions.SESSION_COOKIE] = stolen
    assert browser.get("/w/").url == "/w/pin"
    without_link = opens_wallet(alice)
    PersonalLink.objects.all().delete()
    assert without_link.post("/w/leave").url == "/w/left"


def test_forms_need_their_token_and_errors_are_in_the_language_of_the_holder(alice):
    headers = {"Accept-Language": "de", "Accept": "text/html"}
    browser = Client(enforce_csrf_checks=True, headers=headers)
    browser.get(link_of(alice))
    old = browser.post("/w/pin", {"pin": PIN})
    assert (old.status_code, old["Content-Language"]) == (403, "de")
    assert "zu lange offen" in old.text and "forbidden" in old.text
    assert PersonalLink.objects.get().pin == ""
    # Other forms are those of the studio.
    elsewhere = browser.post("/accounts/login/", {})
    assert "The form is too old" in elsewhere.text


def test_five_wrong_pins_from_one_address_stop_all_tries_from_there(alice, faber):
    path = link_of(alice)
    opens_wallet(alice, path)
    browser = visit(path)
    for _ in range(pins.OF_ADDRESS):
        refuses(give(browser, "000001"), 403, "wrong_pin")
    answer = give(browser, PIN)
    refuses(answer, 429, "too_many_pins")
    assert 3500 < int(answer["Retry-After"]) <= 3600
    for told in ("The PIN was wrong too often.", "Try again in 60 minutes."):
        assert told in answer.text
    # So they do for another wallet, but not from another address.
    bob = link_of(faber.hosts("Bob"))
    opens_wallet(faber, bob)
    assert give(visit(bob), PIN).status_code == 429
    assert give(visit(path, REMOTE_ADDR="192.0.2.7"), PIN).status_code == 302
    age(PinTry, "created_at", timedelta(hours=1))
    assert give(browser, PIN).status_code == 302


def test_a_link_bears_twenty_wrong_pins_a_day_from_anywhere(alice):
    path = link_of(alice)
    opens_wallet(alice, path)
    for number in range(pins.OF_LINK):
        browser = visit(path, REMOTE_ADDR=f"192.0.2.{number}")
        assert give(browser, "000001").status_code == 403
    assert give(visit(path, REMOTE_ADDR="192.0.2.99"), PIN).status_code == 429
    assert give(visit(link_of(alice)), PIN).status_code == 302, "a new link helps"


def test_right_pins_are_bounded_by_link_and_address(alice, faber, monkeypatch):
    path = link_of(alice)
    right = pins.OF_ADDRESS + 2
    monkeypatch.setattr(pins, "ALL_OF_LINK", right)
    for _ in range(right):
        assert give(visit(path), PIN).status_code == 302
    assert not PinTry.objects.exists(), "wrong ones only are tries"
    assert WalletSession.objects.count() == sessions.MAX_SESSIONS
    answer = give(visit(path, REMOTE_ADDR="192.0.2.7"), PIN)
    refuses(answer, 429, "too_many_requests")
    assert "That was too often." in answer.text
    assert 0 < int(answer["Retry-After"]) <= 60
    monkeypatch.setattr(pins, "ALL_OF_ADDRESS", 1)
    bob = link_of(faber.hosts("Bob"))
    answers = [give(visit(bob, REMOTE_ADDR="192.0.2.8"), PIN) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [302, 429]


def test_pins_are_hashed_in_the_threads_of_heavy_requests():
    assert is_heavy({"method": "POST", "path": "/w/pin"})
    assert not is_heavy({"method": "GET", "path": "/w/pin"})


def test_a_link_that_nobody_opens_ends_and_one_that_was_opened_stays(alice):
    path = link_of(alice)
    browser = visit(path)
    age(PersonalLink, "created_at", UNOPENED_FOR)
    for answer in (Client().get(path), browser.get("/w/pin"), give(browser, PIN)):
        refuses(answer, 404, "wallet_link_gone")
    path = link_of(alice)
    opens_wallet(alice, path)
    age(PersonalLink, "created_at", 10 * UNOPENED_FOR)
    assert give(visit(path), PIN).status_code == 302


@pytest.mark.parametrize("how", ["revoked", "replaced", "wallet", "organization"])
def test_whatever_ends_the_link_ends_its_sessions(alice, faber, how):
    path = link_of(alice)
    browser = opens_wallet(alice, path)
    if how == "revoked":
        faber.delete(f"/api/wallets/{alice.wallet_id}/link")
    elif how == "replaced":
        link_of(alice)
    elif how == "wallet":
        faber.delete(f"/api/wallets/{alice.wallet_id}")
    else:
        Tenant.objects.update(deleted_at=faber.tenant.created_at)
    assert browser.get("/w/").url == "/w/pin"
    assert browser.get("/w/pin").status_code == 404
    assert Client().get(path).status_code == 404


def test_a_deleted_wallet_leaves_nothing_of_its_link(alice, faber):
    path = link_of(alice)
    opens_wallet(alice, path)
    give(visit(path), "000001")
    faber.delete(f"/api/wallets/{alice.wallet_id}")
    worker_erases()
    for model in (PersonalLink, WalletSession, PinTry):
        assert not model.objects.exists()


def test_a_session_ends_after_a_rest_and_at_last(alice):
    browser = opens_wallet(alice)
    age(WalletSession, "used_at", sessions.REST - timedelta(minutes=2))
    # A part that the page reads again by itself is no use.
    part = browser.get("/w/inbox/part", headers={"HX-Request": "true"})
    assert part.status_code == 200
    age(WalletSession, "used_at", timedelta(minutes=2))
    part = browser.get("/w/inbox/part", headers={"HX-Request": "true"})
    assert part["HX-Redirect"] == "/w/pin"
    assert browser.get("/w/").url == "/w/pin"
    give(browser, PIN)
    for _ in range(3):  # use keeps it
        assert browser.get("/w/").status_code == 200
        age(WalletSession, "used_at", sessions.REST - timedelta(minutes=2))
    assert browser.get("/w/").status_code == 200
    age(WalletSession, "created_at", sessions.LONGEST)
    assert browser.get("/w/").url == "/w/pin"


def test_ended_sessions_and_old_tries_are_deleted(alice):
    path = link_of(alice)
    browser = opens_wallet(alice, path)
    give(visit(path), "000001")
    tasks.forget_ended_sessions()
    assert (WalletSession.objects.count(), PinTry.objects.count()) == (1, 1)
    age(WalletSession, "used_at", sessions.REST)
    age(PinTry, "created_at", pins.LINK_PERIOD)
    tasks.forget_ended_sessions()
    assert (WalletSession.objects.count(), PinTry.objects.count()) == (0, 0)
    assert browser.get("/w/").url == "/w/pin"


def test_a_frozen_organization_opens_no_wallet(alice, faber):
    browser = opens_wallet(alice)
    Tenant.objects.update(frozen_at=faber.tenant.created_at)
    refuses(browser.get("/w/"), 503, "organization_frozen")


def test_the_api_makes_tells_and_revokes_a_link(alice, faber, acme):
    path = f"/api/wallets/{alice.wallet_id}/link"
    assert faber.get(path) == {"hasLink": False}
    made = faber.post(path)
    assert made["link"].startswith("http") and "/w/agw_" in made["link"]
    times = {name: made[name] for name in ("createdAtUtc", "expiresAt")}
    assert faber.get(path) == times | {"hasLink": True}
    opens_wallet(alice, "/w/" + made["link"].rpartition("/")[2])
    told = faber.get(path)
    assert "pinChosenAtUtc" in told and "expiresAt" not in told
    faber.delete(path)
    faber.delete(path)
    assert faber.get(path) == {"hasLink": False}
    found = AuditEntry.objects.filter(object_id=str(wallet_of(alice).pk))
    actions = [entry.action for entry in found.order_by("pk")]
    assert actions == [
        f"wallet.link_{done}" for done in ("created", "opened", "revoked")
    ]
    for send in (acme.get, acme.post, acme.delete):
        with pytest.raises(ApiError, match="not_found"):
            send(path)
