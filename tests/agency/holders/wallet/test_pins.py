"""A personal link and a PIN open a wallet, and nothing else does."""

import itertools
import re
from datetime import timedelta

import pytest
from django.contrib.auth.hashers import make_password
from django.test import Client

from agency.holders.wallet import links, pins, sessions, tasks, weak_pins
from agency.holders.wallet.models import (
    UNOPENED_FOR,
    PersonalLink,
    PinTry,
    WalletSession,
)
from agency.server.web import is_heavy
from core.valkey import rate_limits
from tenants import audit
from tenants.models import AuditEntry, Tenant
from tests.agency.holders.wallet.conftest import (
    PIN,
    VALUES,
    guessed_at,
    has_guessed,
    link_of,
    opens_wallet,
    refuses,
    wallet_of,
)
from tests.support.erasing import worker_erases
from tests.support.people import ApiError
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
WRONG = "000001"
GUESSED = (
    "000000 123456 987654 890123 135791 123123 121212 12341234 112233 998877 110110 "
    "123321 159753 147258 7894561 1472580 280615 061528 150628 19900101 01011990 "
    "199007 071990 19902020 202120222023 696969 5201314 142536 246810 420420"
)


def visit(path, **address):
    browser = Client(headers={"Accept-Language": "en"}, **address)
    browser.get(path)
    return browser


def turns_pass(seconds):
    """As if so many seconds had passed for who takes turns."""
    server = rate_limits.redis_client()
    for key in server.keys(f"{rate_limits.KEY_PREFIX}pin_turns:*"):
        left = server.pttl(key) - seconds * 1000
        server.set(key, float(server.get(key)) - seconds, px=max(left, 1))


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
    for pin in ("", "12345", "28461x", "1" * 13, "٢٨٤٦١٥", "123123"):
        refuses(give(browser, pin), 400, "pin_not_usable")
        assert PersonalLink.objects.get().pin == "", pin
    assert [pin for pin in GUESSED.split() if not weak_pins.is_weak(pin)] == []
    assert len(weak_pins.common_pins()) > 1000
    # One of eight that nobody has chosen is refused, not more.
    weak = [weak_pins.is_weak(f"{number:06}") for number in range(0, 10**6, 997)]
    assert 0.1 < sum(weak) / len(weak) < 0.15


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
    kept = [name for name in sessions.PATHS if browser.cookies[name].value]
    assert kept == [sessions.KNOWN_COOKIE]
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


def test_five_wrong_pins_of_a_link_stop_no_other_at_that_address(alice, faber):
    path, bob = link_of(alice), link_of(faber.hosts("Bob"))
    for opened in (path, bob):
        opens_wallet(alice, opened)
    browser = visit(path)
    for left in range(pins.OF_ADDRESS - 1, 0, -1):
        answer = give(browser, WRONG)
        refuses(answer, 403, "wrong_pin")
        tries = "tries" if left > 1 else "try"
        assert f"You have {left} more {tries}." in answer.text
    assert "Try again in 60 minutes." in give(browser, WRONG).text, "the last one"
    answer = give(browser, PIN)
    refuses(answer, 429, "too_many_pins")
    assert 3500 < int(answer["Retry-After"]) <= 3600
    told = ["was wrong too often.", "in 60 minutes.", "another browser", "a new link"]
    assert all(sentence in answer.text for sentence in told)
    assert give(visit(bob), PIN).status_code == 302
    assert give(visit(path, REMOTE_ADDR="192.0.2.7"), PIN).status_code == 302
    assert give(browser, PIN).status_code == 429, "another address is not forgiven"
    age(PinTry, "created_at", timedelta(hours=1))
    assert give(browser, PIN).status_code == 302


def test_a_right_pin_clears_what_was_wrong_at_its_link_and_address(alice):
    path = link_of(alice)
    opens_wallet(alice, path)
    browser = visit(path)
    for _ in range(4):
        has_guessed(alice, 3)
        refuses(give(browser, WRONG), 403, "wrong_pin")
        assert give(visit(path), PIN).status_code == 302
    # But not for the link as a whole: those before were 16.
    has_guessed(alice, 4)
    refuses(give(visit(path), PIN), 429, "too_many_pins")


def test_a_link_bears_twenty_wrong_pins_a_day_from_unknown_browsers(alice):
    path = link_of(alice)
    holder = opens_wallet(alice, path)
    for number in range(pins.OF_LINK - 1):
        has_guessed(alice, 1, f"192.0.2.{number}")
    assert give(visit(path, REMOTE_ADDR="192.0.2.98"), WRONG).status_code == 403
    assert give(visit(path, REMOTE_ADDR="192.0.2.99"), PIN).status_code == 429
    assert give(holder, PIN).status_code == 302, "its browser is known"
    assert give(visit(link_of(alice)), PIN).status_code == 302, "a new link helps"


def test_a_known_browser_stays_in_whoever_guesses(alice, faber, monkeypatch):
    path = link_of(alice)
    holder = opens_wallet(alice, path)
    has_guessed(alice, pins.OF_ADDRESS)
    holder.post("/w/leave")
    holder.get(path)
    assert give(holder, PIN).status_code == 302, "also after signing out"
    # Other wallets that it opens change nothing.
    for name in ("Bob", "Carol"):
        bob = link_of(faber.hosts(name))
        holder.get(bob)
        holder.post("/w/switch")
        give(holder, PIN)
    holder.get(path)
    holder.post("/w/switch")
    monkeypatch.setattr(pins, "ALL_OF_ADDRESS", 0.001)  # nobody else at all
    for left in range(pins.OF_BROWSER - 1, -1, -1):
        answer = give(holder, WRONG)
        assert (answer.status_code, f"You have {left} more" in answer.text) == (
            403,
            left > 0,
        )
    refuses(give(holder, PIN), 429, "too_many_pins")
    age(PinTry, "created_at", timedelta(hours=1))
    assert give(holder, PIN).status_code == 302


def test_the_cookie_of_a_known_browser_is_of_one_link_and_pin(alice, faber, caplog):
    path, bob = link_of(alice), link_of(faber.hosts("Bob"))
    known = opens_wallet(alice, path).cookies[sessions.KNOWN_COOKIE]
    assert known["httponly"] and known["path"] == "/w/" and known["samesite"] == "Lax"
    assert known["max-age"] == 180 * 24 * 3600
    assert path.rpartition("/")[2] not in known.value and PIN not in known.value
    opens_wallet(faber, bob)
    forged = known.value.replace(known.value[0], "f" if known.value[0] != "f" else "0")
    for opened, value in [(path, known.value), (path, forged), (bob, known.value)]:
        PinTry.objects.all().delete()
        browser = visit(opened)
        browser.cookies[sessions.KNOWN_COOKIE] = value
        give(browser, WRONG)
        is_known = PinTry.objects.get().browser is not None
        assert is_known is ((opened, value) == (path, known.value))
    assert "POST w/pin" in caplog.text and known.value not in caplog.text


@pytest.mark.parametrize("change", ["pin", "time", "garbage"])
def test_a_known_browser_is_forgotten(alice, monkeypatch, change):
    path = link_of(alice)
    browser = opens_wallet(alice, path)
    if change == "pin":
        PersonalLink.objects.update(pin=make_password("715204"))
    elif change == "time":
        monkeypatch.setattr(sessions, "REMEMBERED", timedelta(0))
    else:
        browser.cookies[sessions.KNOWN_COOKIE] = "~".join(["x:y:z", "", "ä", "1" * 999])
    give(browser, WRONG)
    assert PinTry.objects.get().browser is None


def test_right_pins_are_bounded_by_link_and_address(alice, faber, monkeypatch):
    path = link_of(alice)
    right = pins.OF_ADDRESS + 2
    monkeypatch.setattr(pins, "ALL_OF_LINK", right)
    for _ in range(right):
        assert give(visit(path), PIN).status_code == 302
    assert not PinTry.objects.exists(), "wrong ones only are tries"
    assert WalletSession.objects.count() == sessions.MAX_SESSIONS
    answer = give(visit(path), PIN)
    refuses(answer, 429, "too_many_requests")
    assert "That was too often." in answer.text
    assert 0 < int(answer["Retry-After"]) <= 60
    assert give(visit(path, REMOTE_ADDR="192.0.2.7"), PIN).status_code == 302
    known = visit(path, REMOTE_ADDR="192.0.2.9")
    codes = [give(known, PIN).status_code for _ in range(right + 2)]
    assert codes == [302] * (right + 1) + [429], "the first one was unknown"
    monkeypatch.setattr(pins, "ALL_OF_ADDRESS", 1)
    bob = link_of(faber.hosts("Bob"))
    answers = [give(visit(bob, REMOTE_ADDR="192.0.2.8"), PIN) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [302, 429]


@pytest.fixture
def crowded(alice, faber):
    """The paths of Alice's and Bob's links, where somebody has guessed at the address."""
    paths = link_of(alice), link_of(faber.hosts("Bob"))
    for path in paths:
        opens_wallet(alice, path)
    guessed_at("127.0.0.1", faber)
    return paths


def test_unknown_browsers_take_turns_where_somebody_guesses(crowded, monkeypatch):
    path, bob = crowded
    compared = []
    monkeypatch.setattr(pins, "check_password", lambda *a: compared.append(a))
    monkeypatch.setattr(pins, "TURN_SECONDS", 60)
    give(visit(path), WRONG)
    waiting, last = visit(path), visit(bob)
    for browser, seconds in [(waiting, 60), (last, 120), (waiting, 60), (last, 120)]:
        answer = give(browser, WRONG)
        refuses(answer, 429, "too_many_requests")
        assert seconds - 30 < int(answer["Retry-After"]) <= seconds
        assert "Try again in" in answer.text and "data-turns" in answer.text
    assert len(compared) == 1, "before Argon2"
    assert give(visit(bob, REMOTE_ADDR="192.0.2.7"), WRONG).status_code == 403
    turns_pass(60)
    refuses(give(last, WRONG), 429, "too_many_requests")
    refuses(give(waiting, WRONG), 403, "wrong_pin")


def test_who_asks_before_his_turn_takes_nothing_of_the_address(crowded, monkeypatch):
    monkeypatch.setattr(pins, "ALL_OF_ADDRESS", 2)
    monkeypatch.setattr(pins, "TURN_SECONDS", 60)
    path, bob = crowded
    mallory, holder = visit(bob), visit(path)
    assert [give(mallory, WRONG).status_code for _ in range(5)] == [403] + 4 * [429]
    refuses(give(holder, WRONG), 429, "too_many_requests")
    turns_pass(120)
    refuses(give(holder, WRONG), 403, "wrong_pin")


def test_who_may_not_try_takes_no_turn_and_known_browsers_need_none(crowded, alice):
    path, bob = crowded
    has_guessed(alice, pins.OF_ADDRESS)
    for _ in range(3):
        refuses(give(visit(path), PIN), 429, "too_many_pins")
    holder = visit(bob)
    assert give(holder, PIN).status_code == 302
    for _ in range(3):
        assert give(holder, PIN).status_code == 302
    refuses(give(visit(bob), PIN), 429, "too_many_requests")


def new_link(faber):
    """The path of the link of a new wallet, whose PIN was chosen."""
    made = links.create_link(Wallet.create(faber.tenant), by=audit.SYSTEM)
    PersonalLink.objects.filter(pk=made.pk).update(pin=make_password(PIN))
    return f"/w/{made.token}"


def test_who_may_not_try_takes_nothing_from_others_at_the_address(
    alice, faber, monkeypatch
):
    path, bob = link_of(alice), link_of(faber.hosts("Bob"))
    for opened in (path, bob):
        opens_wallet(alice, opened)
    browser = visit(path)
    has_guessed(alice, pins.OF_ADDRESS)
    monkeypatch.setattr(rate_limits, "KEY_PREFIX", "test:")
    monkeypatch.setattr(pins, "ALL_OF_ADDRESS", 2)
    for _ in range(3):
        refuses(give(browser, PIN), 429, "too_many_pins")
    fresh = visit(link_of(faber.hosts("Carol")))
    for _ in range(3):
        refuses(give(fresh, "123456"), 400, "pin_not_usable")
    assert give(visit(bob), PIN).status_code == 302


def test_many_holders_open_their_wallets_while_somebody_guesses(faber, monkeypatch):
    """Behind one address: half of them in their browsers, half in new ones."""
    monkeypatch.setattr(pins, "TURN_SECONDS", 0.05)
    monkeypatch.setattr(pins, "OF_CROWD", 10)
    known = [opens_wallet(faber, new_link(faber)) for _ in range(12)]
    new = [visit(new_link(faber)) for _ in range(12)]
    guessed = itertools.cycle([visit(new_link(faber)) for _ in range(8)])
    for _ in range(pins.OF_CROWD):
        assert give(next(guessed), WRONG).status_code == 403
    waited = 0
    for browser in known:
        give(next(guessed), WRONG)
        assert give(browser, PIN).status_code == 302
    while new:
        give(next(guessed), WRONG)
        browser = new.pop(0)
        answer = give(browser, PIN)
        if answer.status_code != 302:
            refuses(answer, 429, "too_many_requests")
            waited += 1
            new.append(browser)
    assert waited


def test_pins_are_hashed_in_the_threads_of_heavy_requests():
    assert is_heavy({"method": "POST", "path": "/w/pin"})
    assert not is_heavy({"method": "GET", "path": "/w/pin"})
    assert is_heavy({"method": "POST", "path": "/w/new/of-a-link"})


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
    give(visit(path), WRONG)
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
    give(visit(path), WRONG)
    tasks.forget_ended_sessions()
    assert (WalletSession.objects.count(), PinTry.objects.count()) == (1, 1)
    age(WalletSession, "used_at", sessions.REST)
    age(PinTry, "created_at", pins.DAY)
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
    assert faber.get(path) == {name: made[name] for name in made if name != "link"}
    opens_wallet(alice, "/w/" + made["link"].rpartition("/")[2])
    told = faber.get(path)
    assert "pinChosenAtUtc" in told and "expiresAt" not in told
    assert told["updatedAtUtc"] > made["updatedAtUtc"] >= made["createdAtUtc"]
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
