"""The page of a kiosk: a request, its answer for some seconds, the next request."""

import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agency.holders.links import kiosks as pages_of_kiosks
from connections import link_expiry
from connections.models import Connection
from tenants.models import Tenant
from tests.agency.holders.links.conftest import VALUES, answer, text_of
from tests.agency.holders.wallet.conftest import opens_wallet
from tests.support.errors import assert_error
from tests.support.policies import attribute, policy, predicate
from tests.support.races import at_once
from verifications import kiosks, messages
from verifications.models import Kiosk, Verification

pytestmark = pytest.mark.django_db(transaction=True)
POLICY = policy(attribute("Full Name", policyName="Who"))
ELSE = attribute("city", policyName="City")
SHOWN = VALUES["Full Name"]


class Screen:
    """A device with the page of a kiosk, without a session."""

    def __init__(self, url):
        self.client = Client(enforce_csrf_checks=True)
        self.path = "/kiosk/" + url.rpartition("/")[2]
        self.seen, self.page = "", ""

    def open(self, **headers):
        return self.client.get(self.path, headers={"Accept-Language": "en"} | headers)

    def look(self, **headers):
        headers = {"Accept-Language": "en", "HX-Request": "true"} | headers
        response = self.client.post(f"{self.path}/screen{self.seen}", headers=headers)
        if response.status_code in (200, 404):
            self.page = response.text
            found = re.search(r'/screen(\?seen=[\w-]+)"', self.page)
            self.seen = found[1] if found else ""
        return response

    @property
    def state(self):
        """The state after it was read again."""
        self.look()
        return re.search(r'data-state="(\w+)"', self.page)[1]

    @property
    def link(self):
        return "http://testserver/i/" + re.search(r"/i/([\w-]+)/qr", self.page)[1]


def take_answer(holder, screen):
    token = screen.link.rpartition("/i/")[2]
    url = Connection.objects.get(token=token).invitation_url
    return answer(holder, url)


@pytest.fixture
def opens(faber):
    """Make a kiosk and open its page."""

    def make(attributes=POLICY["attributes"], predicates=(), **body):
        asked = policy(*attributes, predicates=list(predicates))
        stored = faber.post("/verificationPolicies", asked)
        desk = {"name": "Desk", "policyId": stored["policyId"], "shownItems": ["Who"]}
        return Screen(faber.post("/kiosks", desk | body)["url"])

    return make


@pytest.fixture
def screen(opens):
    """The page of a kiosk that asks."""
    screen = opens()
    assert screen.state == "asking"
    return screen


def make_older(seconds):
    """As if an answer had been shown for so long."""
    [kiosk] = Kiosk.objects.all()
    kiosk.shown_at -= timedelta(seconds=seconds)
    kiosk.save()


def test_opening_the_page_makes_no_request_and_without_scripts_it_says_so(opens):
    page = opens().open()
    assert page.status_code == 200 and 'data-state="starting"' in page.text
    assert page["Referrer-Policy"] == "no-referrer"
    said = page.text.partition("<noscript>")[2].partition("</noscript>")[0]
    assert "needs JavaScript" in said and "load the page again" in said
    assert not Verification.objects.exists()


def test_it_asks_shows_the_answer_and_asks_again(screen, graduate):
    assert "Full Name" in screen.page and SHOWN not in screen.page
    assert "I have no card" not in screen.page, "the organization has no words for it"
    first = screen.link
    take_answer(graduate, screen)
    assert screen.state == "valid"
    assert SHOWN in screen.page and 'data-seconds="8"' in screen.page
    make_older(5)
    assert screen.look().status_code == 204  # until its time is over
    make_older(3)
    assert screen.state == "asking" and screen.link != first
    assert SHOWN not in screen.page
    assert Verification.objects.filter(role="verifier").count() == 2


def test_only_the_chosen_values_are_shown(opens, graduate):
    year = attribute("year", policyName="Year")
    for chosen in ([], ["Year"]):
        screen = opens([*POLICY["attributes"], year], shownItems=chosen)
        assert screen.state == "asking"
        take_answer(graduate, screen)
        assert screen.state == "valid" and SHOWN not in screen.page
        assert (VALUES["year"] in screen.page) is bool(chosen)


def test_a_value_that_is_a_day_is_shown_as_one(opens, faber):
    member, bob = faber.defines("name", "validUntil"), faber.hosts("Bob")
    bob.receives(faber, member, {"name": "Bob", "validUntil": "20271130"})
    screen = opens([attribute("validUntil", policyName="End")], shownItems=["End"])
    assert screen.state == "asking" and "Valid until" in screen.page
    take_answer(bob, screen)
    assert screen.state == "valid"
    assert "30 Nov 2027" in screen.page and "20271130" not in screen.page


def test_the_verdict_is_read_from_afar_and_the_card_is_beside_it(opens, faber):
    design = {"names": {"en": "Member card"}, "labels": {"name": {"en": "Full name"}}}
    made = faber.defines("name", "born", name="Member", display=design)
    bob = faber.hosts("Bob")
    bob.receives(faber, made, {"name": "Bob", "born": "19990417"})
    only = {"restrictions": [{"credentialDefinitionId": made["definitionId"]}]}
    who, born = (attribute(name, policyName=name, **only) for name in ("name", "born"))
    screen = opens([who, born], shownItems=["name"])
    assert screen.state == "asking" and "Member card" in screen.page
    take_answer(bob, screen)
    assert screen.state == "valid"
    assert "<h1>Valid</h1>" in screen.page and "Member card" in screen.page
    assert "<bdi>Full name</bdi>" in screen.page and "<bdi>Bob</bdi>" in screen.page
    # What the kiosk does not show stays blank.
    assert "1999" not in screen.page and screen.page.count('class="id-blank"') == 1


def test_whoever_has_no_card_reads_what_to_do(opens, graduate):
    words = {"noCardText": "Ask <b>in room 12</b>.", "noCardUrl": "https://f.example/c"}
    screen = opens(**words)
    assert screen.state == "asking" and "I have no card" in screen.page
    assert "<bdi>Ask &lt;b&gt;in room 12&lt;/b&gt;.</bdi>" in screen.page
    # A code, as nobody may leave the page on this device.
    assert "https://f.example/c</bdi>" in screen.page
    assert "data:image/svg+xml;base64," in screen.page
    assert 'href="https://f.example' not in screen.page
    take_answer(graduate, screen)
    assert screen.state == "valid" and "I have no card" not in screen.page


def test_a_proof_that_is_not_valid_shows_a_cross_and_no_value(opens, graduate):
    screen = opens([*POLICY["attributes"], ELSE])
    assert screen.state == "asking"
    take_answer(graduate, screen)
    assert screen.state == "invalid"
    assert screen.page.count("No card that proves this.") == 1
    assert SHOWN not in screen.page


def test_a_kiosk_says_in_words_which_age_was_not_proven(opens, graduate):
    adult = predicate("born", "<=", "today-18y", policyName="Adult")
    screen = opens(predicates=[adult])
    assert screen.state == "asking"
    take_answer(graduate, screen)
    assert screen.state == "invalid"
    assert ", that is 18 or older</p>" in screen.page


def test_a_request_declined_by_link_shows_a_cross(screen, faber, alice, monkeypatch):
    phone = opens_wallet(alice)
    for code, reason, said in (
        (messages.ABANDONED, "Mallory", ""),
        ("e.not-wanted", "Mallory", ""),
        ("declined", "", ""),
        ("link_expired", "", ""),
        (messages.ABANDONED, "no_card_fits", "The wallet has no card that fits."),
    ):
        monkeypatch.setattr(messages, "ABANDONED", code)  # of the report of the wallet
        link = screen.link.replace("/i/", "/w/take/")
        phone.post(link, {"action": "decline", "reason": reason})
        assert screen.state == "declined", code
        assert 'class="mark failed"' in screen.page
        assert said in screen.page and "Mallory" not in screen.page
        make_older(8)
        assert screen.state == "asking"


def test_a_button_asks_again_before_the_time_is_over(opens, graduate):
    screen = opens([*POLICY["attributes"], ELSE])
    assert screen.state == "asking"
    take_answer(graduate, screen)
    assert screen.state == "invalid"
    [again] = re.findall(r'hx-post="([^"]+again=[^"]+)"', screen.page)
    for _ in range(2):  # the second press finds the new request
        asked = screen.client.post(again)
        assert 'data-state="asking"' in asked.text
        assert Verification.objects.filter(role="verifier").count() == 2
    assert screen.client.post(f"{screen.path}/screen?again=x").status_code == 200
    assert Verification.objects.filter(role="verifier").count() == 2


def test_a_request_that_the_organization_cancels_shows_no_cross(screen):
    first = screen.link
    Verification.objects.get().decline()
    assert screen.state == "asking" and screen.link != first
    assert 'class="mark failed"' not in screen.page


def test_an_open_request_is_used_again_until_it_is_old(screen):
    first = screen.link
    assert screen.look().status_code == 204
    again = Screen(screen.path)  # another device, or the page loaded anew
    assert again.state == "asking" and again.link == first
    old = timezone.now() - kiosks.REQUEST_LIFETIME
    Verification.objects.update(created_at=old)
    assert screen.state == "asking" and screen.link != first
    assert Verification.objects.count() == Connection.objects.count() == 1


def test_a_request_that_has_expired_is_removed_with_the_next_look(screen):
    past = timezone.now() - timedelta(seconds=1)
    Connection.objects.update(expires_at=past, expiry_due_at=past)
    link_expiry.end_expired_links()
    assert Verification.objects.get().state == "Rejected"
    assert screen.state == "asking"
    assert Verification.objects.get().state == "Requested"


def test_an_answer_that_came_while_no_screen_looked_is_not_shown(screen, graduate):
    take_answer(graduate, screen)
    long_ago = timezone.now() - kiosks.MAX_DELAY
    Verification.objects.filter(role="verifier").update(verified_at=long_ago)
    assert screen.state == "asking" and SHOWN not in screen.page


def test_two_devices_that_look_at_once_get_the_same_request(opens):
    screen = opens()
    others = [Screen(screen.path) for _ in range(4)]
    assert at_once(*[other.look for other in others])
    assert len({other.link for other in others}) == 1
    assert Verification.objects.count() == 1


def test_a_revoked_kiosk_and_an_unknown_one_are_closed(screen, faber):
    [kiosk] = faber.get("/kiosks")
    faber.delete(f"/kiosks/{kiosk['kioskId']}")
    assert screen.look().status_code == 404 and screen.open().status_code == 404
    assert "This screen is closed" in screen.page
    assert "data-watched" not in screen.page
    assert Screen("/kiosk/agk_none").open().status_code == 404


def test_it_waits_while_its_organization_moves(opens):
    screen = opens()
    Tenant.objects.update(frozen_at=timezone.now())
    assert_error(screen.look(), 503, "organization_frozen")


def test_calls_are_limited_by_kiosk_and_address(opens, monkeypatch):
    monkeypatch.setattr(pages_of_kiosks, "CALLS_PER_KIOSK", 2)
    monkeypatch.setattr(pages_of_kiosks, "UNKNOWN_PER_ADDRESS", 1)
    screen, other = opens(), opens()
    assert screen.state == "asking" and screen.state == "asking"
    assert_error(screen.look(), 429, "too_many_requests")
    assert other.state == "asking"
    unknown = Screen("/kiosk/agk_none")
    assert unknown.open().status_code == 404
    assert_error(unknown.open(), 429, "too_many_requests")


def test_a_screen_is_recorded_once_a_minute(opens, faber):
    screen = opens()
    assert "lastSeenAtUtc" not in faber.get("/kiosks")[0]
    screen.look()
    seen = faber.get("/kiosks")[0]["lastSeenAtUtc"]
    screen.look()
    assert faber.get("/kiosks")[0]["lastSeenAtUtc"] == seen


def test_it_speaks_the_language_of_the_device(opens, faber):
    screen = opens()
    german = {"Accept-Language": "de"}
    assert "Kein Netz" in text_of(screen.open(**german))
    screen.look(**german)
    assert "Scannen Sie das mit Ihrem Handy" in screen.page
    faber.tenant.default_language = "fr"
    faber.tenant.save()
    assert screen.open(**{"Accept-Language": "xx"})["Content-Language"] == "fr"


def test_the_colors_are_those_of_the_organization(opens, faber):
    screen = opens()
    faber.tenant.primary_color = "#aa0000"
    faber.tenant.save()
    assert "colors.css" in screen.open().text
    css = screen.client.get(f"{screen.path}/colors.css")
    assert "--accent" in css.text
    assert Client().get("/kiosk/agk_none/colors.css").status_code == 404
