"""A personal link and a PIN open a wallet, and nothing else does."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from agency.server.web import is_heavy
from agency.web_wallet import pins, sessions, tasks
from agency.web_wallet.models import UNOPENED_FOR, PersonalLink, PinTry, WalletSession
from tenants.models import AuditEntry
from tests.agency.web_wallet.conftest import (
    PIN,
    VALUES,
    link_of,
    opens_wallet,
    text_of,
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
    path = link_of(alice)
    browser = Client()
    answer = browser.get(path)
    assert answer.url == "/w/pin" and answer["Referrer-Policy"] == "no-referrer"
    cookie = browser.cookies["agency_wallet_link"]
    assert cookie["httponly"] and cookie["path"] == "/w/"
    assert cookie["samesite"] == "Lax"
    assert path.rpartition("/")[2] not in text_of(browser.get("/w/pin"))
    assert path.rpartition("/")[2] not in str(PersonalLink.objects.values())
    # Looking at it has used nothing up.
    assert "Choose a PIN" in text_of(visit(path).get("/w/pin"))


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
    asked = text_of(browser.get("/w/switch"))
    assert "the wallet of <bdi>Alice</bdi>" in asked and "Nothing is lost" in asked
    assert bob.rpartition("/")[2] not in asked and "Bob" not in asked
    assert '<form method="post" action="/w/switch">' in asked
    assert re.search('<a [^>]*href="/w/">Stay</a>', asked)
    assert browser.cookies[sessions.LINK_COOKIE].value == known
    assert "<bdi>Alice</bdi>" in text_of(browser.get("/w/")), "who stays"
    assert browser.post("/w/switch").url == "/w/pin"
    assert browser.cookies[sessions.LINK_COOKIE].value == bob.rpartition("/")[2]
    assert give(browser, PIN).url == "/w/"
    assert "<bdi>Bob</bdi>" in text_of(browser.get("/w/"))
    # And back, by its own link.
    assert browser.get(f"/w/{known}").url == "/w/switch"
    browser.post("/w/switch")
    give(browser, PIN)
    assert "<bdi>Alice</bdi>" in text_of(browser.get("/w/"))


def test_without_a_session_the_question_says_no_name(alice, faber):
    browser, bob = opened_both(alice, faber)
    age(WalletSession, "used_at", sessions.REST)
    browser.get(bob)
    asked = text_of(browser.get("/w/switch"))
    assert "knows a wallet at <bdi>Faber" in asked and "Alice" not in asked


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
def test_a_link_that_is_replaced_while_the_pin_is_given_is_gone(
    alice, monkeypatch, module, step
):
    """Comparing a PIN takes a while."""
    is_first = step == "choose_pin"
    browser = visit(link_of(alice)) if is_first else opens_wallet(alice)
    real = getattr(module, step)

    def replaced(*arguments):
        link_of(alice)
        return real(*arguments)

    monkeypatch.setattr(module, step, replaced)
    answer = give(browser, PIN)
    assert (answer.status_code, "wallet_link_gone" in text_of(answer)) == (404, True)


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
    assert field.findall(text_of(visit(path).get("/w/pin"))) == ["text"]
    first = opens_wallet(alice, path)
    assert first.get("/w/").status_code == 200
    assert first.cookies["agency_wallet"]["httponly"]
    assert first.cookies["agency_wallet"]["path"] == "/w/"
    assert "agency_session" not in first.cookies
    second = visit(path)
    assert second.get("/w/").url == "/w/pin"
    asked = text_of(second.get("/w/pin"))
    assert "Enter your PIN" in asked and field.findall(asked) == ["password"]
    assert give(second, PIN).url == "/w/"
    assert "Your cards" in text_of(second.get("/w/"))
    assert PIN not in str(PersonalLink.objects.values())
    actions = AuditEntry.objects.values_list("action", flat=True)
    assert "wallet.link_opened" in actions


def test_who_comes_second_does_not_choose(alice):
    path = link_of(alice)
    first, second = visit(path), visit(path)
    give(first, PIN)
    answer = second.post("/w/pin", {"pin": "715203"})
    assert (answer.status_code, "wrong_pin" in text_of(answer)) == (403, True)
    with pytest.raises(Exception, match="chosen before"):
        pins.choose_pin(PersonalLink.objects.get(), "715203", "192.0.2.1")


def test_a_pin_that_is_guessed_at_once_is_refused(alice):
    browser = visit(link_of(alice))
    for pin in (
        "",
        "12345",
        "000000",
        "123456",
        "987654",
        "28061x",
        "1" * 13,
        "٢٨٠٦١٥",
    ):
        answer = give(browser, pin)
        told = "pin_not_usable" in text_of(answer)
        assert (answer.status_code, told) == (400, True), pin
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
    asked = text_of(browser.get("/w/leave"))
    assert "Nothing is deleted" in asked and "cannot be undone" in asked
    assert browser.get("/w/").status_code == 200
    assert browser.post("/w/leave").url == "/w/left"
    assert not any(browser.cookies[name].value for name in sessions.PATHS)
    assert not WalletSession.objects.exists()
    assert browser.get("/w/leave").url == browser.get("/w/pin").url == "/w/left"
    assert "You are signed out" in text_of(browser.get("/w/left"))
    browser.cookies[sessions.SESSION_COOKIE] = stolen
    assert browser.get("/w/").url == "/w/pin"


def test_who_has_no_link_any_more_signs_out_too(alice):
    browser = opens_wallet(alice)
    PersonalLink.objects.all().delete()
    assert browser.post("/w/leave").url == "/w/left"


def test_forms_need_their_token_and_errors_are_in_the_language_of_the_holder(alice):
    browser = Client(
        enforce_csrf_checks=True,
        headers={"Accept-Language": "de", "Accept": "text/html"},
    )
    browser.get(link_of(alice))
    old = browser.post("/w/pin", {"pin": PIN})
    assert (old.status_code, old["Content-Language"]) == (403, "de")
    assert "zu lange offen" in text_of(old) and "forbidden" in text_of(old)
    assert PersonalLink.objects.get().pin == ""
    # Other forms are those of the studio.
    elsewhere = browser.post("/accounts/login/", {})
    assert "The form is too old" in text_of(elsewhere)


def test_five_wrong_pins_from_one_address_stop_all_tries_from_there(alice, faber):
    path = link_of(alice)
    opens_wallet(alice, path)
    browser = visit(path)
    for _ in range(pins.OF_ADDRESS):
        answer = give(browser, "000001")
        assert (answer.status_code, "wrong_pin" in text_of(answer)) == (403, True)
    answer = give(browser, PIN)
    assert (answer.status_code, "too_many_pins" in text_of(answer)) == (429, True)
    assert 3500 < int(answer["Retry-After"]) <= 3600
    told = text_of(answer)
    assert "The PIN was wrong too often." in told
    assert "Try again in 60 minutes." in told
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


def test_right_pins_do_not_count(alice):
    path = link_of(alice)
    opens_wallet(alice, path)
    for _ in range(pins.OF_ADDRESS + 2):
        assert give(visit(path), PIN).status_code == 302
    assert not PinTry.objects.exists()
    assert WalletSession.objects.count() == sessions.MAX_SESSIONS


def test_right_pins_are_bounded_in_a_minute_by_link_and_address(
    alice, faber, monkeypatch
):
    path = link_of(alice)
    monkeypatch.setattr(pins, "ALL_OF_LINK", 3)
    for _ in range(3):
        assert give(visit(path), PIN).status_code == 302
    answer = give(visit(path, REMOTE_ADDR="192.0.2.7"), PIN)
    assert (answer.status_code, "too_many_requests" in text_of(answer)) == (429, True)
    assert "That was too often." in text_of(answer)
    assert 0 < int(answer["Retry-After"]) <= 60
    monkeypatch.setattr(pins, "ALL_OF_ADDRESS", 1)
    bob = link_of(faber.hosts("Bob"))
    answers = [give(visit(bob, REMOTE_ADDR="192.0.2.8"), PIN) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [302, 429]


def test_pins_are_hashed_in_the_threads_of_heavy_requests():
    assert is_heavy({"method": "POST", "path": "/w/pin"})
    assert not is_heavy({"method": "GET", "path": "/w/pin"})


def test_a_link_that_nobody_opens_ends(alice):
    path = link_of(alice)
    browser = visit(path)
    age(PersonalLink, "created_at", UNOPENED_FOR)
    for answer in (Client().get(path), browser.get("/w/pin"), give(browser, PIN)):
        assert answer.status_code == 404
        assert "wallet_link_gone" in text_of(answer)


def test_a_link_that_was_opened_stays(alice):
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
        type(faber.tenant).objects.filter(pk=faber.tenant.pk).update(
            deleted_at=faber.tenant.created_at
        )
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


def test_a_made_up_link_is_not_known(db):
    for token in ("agw_x", "agw_" + "0" * 38, "x" * 300):
        assert Client().get(f"/w/{token}").status_code == 404


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
    assert browser.get("/w/").status_code == 200
    age(WalletSession, "created_at", sessions.LONGEST)
    assert browser.get("/w/").url == "/w/pin"


def test_use_keeps_a_session(alice):
    browser = opens_wallet(alice)
    for _ in range(3):
        age(WalletSession, "used_at", sessions.REST - timedelta(minutes=2))
        assert browser.get("/w/").status_code == 200


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
    faber.tenant.frozen_at = faber.tenant.created_at
    faber.tenant.save()
    answer = browser.get("/w/")
    assert answer.status_code == 503
    assert "organization_frozen" in text_of(answer)


def test_the_api_makes_tells_and_revokes_a_link(alice, faber):
    path = f"/api/wallets/{alice.wallet_id}/link"
    assert faber.get(path) == {"hasLink": False}
    made = faber.post(path)
    assert made["link"].startswith("http") and "/w/agw_" in made["link"]
    assert faber.get(path) == {
        "hasLink": True,
        "createdAtUtc": made["createdAtUtc"],
        "expiresAt": made["expiresAt"],
    }
    opens_wallet(alice, "/w/" + made["link"].rpartition("/")[2])
    told = faber.get(path)
    assert "pinChosenAtUtc" in told and "expiresAt" not in told
    faber.delete(path)
    faber.delete(path)
    assert faber.get(path) == {"hasLink": False}
    actions = AuditEntry.objects.filter(object_id=str(wallet_of(alice).pk))
    assert list(actions.order_by("pk").values_list("action", flat=True)) == [
        "wallet.link_created",
        "wallet.link_opened",
        "wallet.link_revoked",
    ]


def test_a_link_is_found_by_nobody_else(alice, acme):
    for send in (acme.get, acme.post, acme.delete):
        with pytest.raises(ApiError, match="not_found"):
            send(f"/api/wallets/{alice.wallet_id}/link")
