"""The wallet as a stack of cards: what lies on top, what is below, whose it is."""

import pytest
from django.test import Client

from agency.holders.wallet.sessions import LINK_COOKIE, SESSION_COOKIE
from tests.support.chromium import MARKS
from tests.support.steps import step

MEMBER = {"name": "Ada", "city": "Oxford", "valid until": "20991130"}
DESIGN = {"names": {"en": "Member card"}, "title": "name", "face": []}
TABS = ("/w/", "/w/inbox", "/w/history", "/w/me")


@step
def member(faber, alice):
    made = faber.defines(*MEMBER, name="Member", display=DESIGN)
    alice.receives(faber, made, MEMBER)
    return made


def test_the_face_says_the_state_and_until_when_and_the_back_the_rest(wallet, member):
    page = wallet.get("/w/").text
    face, _, back = page.partition('<details class="id-back"')
    assert '<span class="badge good">Valid</span>' in face
    assert "<bdi>30 Nov 2099</bdi>" in face and "<bdi>Ada</bdi>" in face
    assert "<bdi>Oxford</bdi>" not in face and "<bdi>Oxford</bdi>" in back
    assert "Turn the card" in back and "From <bdi>Faber College</bdi>" in back


def test_one_card_is_turned_at_a_time(wallet, faber, alice, member, degree):
    alice.receives(faber, degree, {"name": "Ada", "year": "2021"})
    page = wallet.get("/w/").text
    assert page.count('<details class="id-back" name="cards">') == 2


def test_each_page_says_whose_wallet_it_is_and_where_one_is(wallet):
    for address in TABS:
        page = wallet.get(address).text
        top = page.partition('class="wallet-bar"')[2].partition("<h1")[0]
        assert "<bdi>Alice</bdi>" in top and ">Faber College</bdi>" in top
        dock = page.partition('<nav class="dock"')[2].partition("</nav>")[0]
        assert dock.count("<a ") == len(TABS)
        assert f'href="{address}" aria-current="page"' in dock
        assert dock.count("aria-current") == 1, address


def test_a_page_within_a_part_marks_it_too(wallet):
    for address, part in (("add", ""), ("keep", "me"), ("passkeys/new", "me")):
        page = wallet.get(f"/w/{address}").text
        assert f'href="/w/{part}" aria-current="true"' in page, address


def test_my_link_and_the_way_out_are_under_me(wallet):
    page = wallet.get("/w/me").text
    assert 'href="/w/keep"' in page and 'href="/w/leave"' in page


def test_a_phone_can_install_it_by_the_name_of_the_organization(wallet, faber, member):
    faber.tenant.primary_color = "#7a1f5c"
    faber.tenant.save()
    page = wallet.get("/w/").text
    assert 'rel="manifest" href="/w/manifest.json"' in page
    answer = wallet.get("/w/manifest.json", headers={"Accept-Language": "ar"})
    assert answer["Content-Type"] == "application/manifest+json"
    assert "no-store" in answer["Cache-Control"]
    told = answer.json()
    assert (told["name"], told["dir"]) == ("Faber College", "rtl")
    assert told["theme_color"] == "#7a1f5c" and told["display"] == "standalone"
    assert told["start_url"] == told["scope"] == "/w/"
    # Nothing of the holder, who may not be who holds the phone.
    assert "Alice" not in answer.text and "Ada" not in answer.text


@pytest.mark.django_db
def test_a_browser_without_a_wallet_has_nothing_to_install():
    assert Client().get("/w/manifest.json").status_code == 404
    assert "manifest" not in Client().get("/w/left").text


class TestInABrowser:
    """A tap anywhere on a card takes it out of the stack, also by the keyboard."""

    pytestmark = MARKS
    COVERED = """(() => {
      const [first, second] = [...document.querySelectorAll(".stack article")];
      return second.getBoundingClientRect().top
        < first.querySelector(".id-face").getBoundingClientRect().bottom;
    })()"""

    @pytest.fixture
    def stack(self, page, wallet, faber, alice, member, degree):
        alice.receives(faber, degree, {"name": "Ada", "year": "2021"})
        page.sign_in(wallet, SESSION_COOKIE, LINK_COOKIE)
        page.tab.emulate_media(reduced_motion="reduce")
        page.resize(390, 844)
        page.open("/w/")
        return page

    def test_a_tap_takes_a_card_out(self, stack):
        assert stack.evaluate(self.COVERED)
        stack.tab.mouse.click(*self.middle_of_the_head(stack))
        stack.wait_for(f"!{self.COVERED}")
        assert stack.evaluate("document.querySelectorAll('[open]').length") == 1
        # Another one turns the first back.
        stack.tab.click(".stack article:last-of-type .id-name", force=True)
        stack.wait_for(self.COVERED)
        assert stack.evaluate("document.querySelectorAll('[open]').length") == 1

    def test_enter_does_the_same(self, stack):
        stack.evaluate("document.querySelector('.stack summary').focus()")
        stack.tab.keyboard.press("Enter")
        stack.wait_for(f"!{self.COVERED}")

    def middle_of_the_head(self, stack):
        box = "document.querySelector('.stack .id-top').getBoundingClientRect()"
        return stack.evaluate(f"[{box}.x + {box}.width / 2, {box}.y + 10]")
