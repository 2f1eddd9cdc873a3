"""The exchange page in Chromium: live, accessible, at any width, without scripts."""

import pytest

from connections.models import Connection, OutboundMessage
from credentials.models import Credential
from tenants.models import Tenant
from tests.agency.studio.exchange.conftest import url_of
from tests.support import walks
from tests.support.chromium import DESKTOP, MARKS, OPEN_ALL, PHONE, SMALLEST
from tests.support.outside_exchanges import VALUES
from tests.support.policies import attribute
from tests.support.processes import eventually
from verifications.models import Verification
from verifications.present_proof import prover

pytestmark = MARKS
TO_LOOK = 2  # seconds, of poll.js
LONG = "W" * 70
BADGE = "document.querySelector('#live .badge').textContent"
WIDE = """[...document.querySelectorAll('main :not(svg *)')].filter((one) =>
  one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('pre'))
  .map((one) => one.outerHTML.slice(0, 90))"""


@pytest.fixture
def visit(page, browser):
    """Open the page of an object, as Fay."""
    page.sign_in(browser)

    def visit(row):
        page.open(url_of(row))
        page.evaluate(OPEN_ALL)
        return page

    return visit


@pytest.fixture
def rows(walk, phone, faber):
    """One object of each kind, with long words and everything that can be shown."""
    credential = walks.credential(walk, "issuer", "Offered")
    proof = walks.verification(walk, "verifier", "Accepted")
    connection = phone.connects(faber)
    body = {"connectionId": connection.connection_id, "text": "Hello"}
    faber.post("/messages", body)
    OutboundMessage.objects.filter(type="basicmessage/1.0/message").update(
        status="exhausted", attempts=10, last_error="endpoint_unreachable"
    )
    definition = faber.defines(LONG, "level", name=LONG[:64])["definitionId"]
    values = {LONG: LONG, "level": VALUES["level"]}
    made = faber.post(
        "/credentials", {"definitionId": definition, "credentialValues": values}
    )
    long_offer = type(credential).objects.get(pk=made["credentialId"])
    Connection.objects.filter(pk=connection.pk).update(name=LONG[:64])
    return {
        "connection": connection,
        "credential": credential,
        "verification": proof,
        "link": long_offer,
    }


def test_no_page_has_a_finding_of_axe(visit, axe, rows):
    found = {}
    for name, row in rows.items():
        page = visit(row)
        for scheme, width in (("dark", PHONE), ("light", DESKTOP)):
            page.prefer(scheme)
            page.resize(width, 800)
            found[f"{name} {scheme}"] = page.findings()
    assert {name: one for name, one in found.items() if one} == {}


def test_nothing_scrolls_sideways_and_all_is_our_own(visit, rows):
    for row in rows.values():
        page = visit(row)
        assert page.strange_calls() == []
        for width in (DESKTOP, PHONE, SMALLEST):
            page.resize(width, 800)
            assert page.evaluate(WIDE) == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width


ENDS = """['.id-card', '.qr', '[aria-labelledby=state]', '.past > .card']
  .map((one) => document.querySelector(`main ${one}`))
  .filter(Boolean).map((one) => Math.round(one.getBoundingClientRect().bottom))"""


def test_card_state_next_action_and_timeline_fit_a_screen(page, browser, walk, faber):
    Tenant.objects.update(visitor_wallets=True)
    rows = [
        walks.credential(walk, "issuer", "Issued"),
        walks.verification(walk, "verifier", "Accepted"),
    ]
    definition = faber.defines("name", name="Member")["definitionId"]
    body = {"definitionId": definition, "credentialValues": {"name": "Ada"}}
    by_link = faber.post("/credentials", body)["credentialId"]
    rows.append(Credential.objects.get(pk=by_link))
    page.sign_in(browser)
    page.resize(DESKTOP, 800)
    for row in rows:
        page.open(url_of(row))
        ends = page.evaluate(ENDS)
        assert len(ends) >= 2 and max(ends) <= 800, (row.OBJECT_TYPE, ends)


MANY = [f"attribute {number}" for number in range(20)]


@pytest.fixture
def judged(page, browser, faber):
    """Let a card with MANY attributes answer, and open the verdict as Fay."""
    alice, made = faber.hosts("Alice"), faber.defines(*MANY, name="Record")
    alice.receives(faber, made, dict.fromkeys(MANY, "Oxford"))
    page.sign_in(browser)

    def judge(*names):
        asked = [attribute(name, policyName=name) for name in names]
        faber.asks(alice, attributes=asked)
        prover.answer_request(Verification.objects.filter(role="prover").latest("pk"))
        page.resize(DESKTOP, 800)
        page.open(url_of(Verification.objects.filter(role="verifier").latest("pk")))
        return page

    return judge


def end_of(page, selector):
    place = f"document.querySelector('{selector}').getBoundingClientRect().bottom"
    return page.evaluate(place)


@pytest.mark.parametrize(
    ("names", "first"),
    [(MANY, MANY[0]), ([*MANY[:-1], "another"], "another")],
    ids=["valid", "not valid"],
)
def test_a_verdict_of_twenty_rows_fits_a_screen(judged, names, first):
    page = judged(*names)
    assert end_of(page, ".verdict") <= 800
    assert page.text(".verdict dt").strip() == first
    page.resize(PHONE, 800)
    assert page.too_wide() == []


def test_the_next_action_stays_beside_the_verdict_of_more_rows(judged):
    page = judged(*MANY, "another", "one more")
    assert "16 more" in page.text(".verdict")
    assert end_of(page, ".verdict .titled .button") <= 300


def test_the_page_follows_the_exchange_and_keeps_what_is_open(visit, page, walk):
    both = walk.offers()
    page.stop_clock()
    page = visit(both["issuer"])
    assert page.evaluate(BADGE) == "Not accepted yet"
    walks.fresh(both["holder"]).accept()
    page.pass_time(TO_LOOK)
    page.wait_for(f"{BADGE} === 'Accepted, to be issued'")
    assert page.evaluate("document.getElementById('json-details').open")
    told = page.text("#state-change")
    assert told.startswith("Accepted, to be issued. The holder has accepted.")
    times = page.evaluate(
        "[...document.querySelectorAll('#live time')].map((one) => one.textContent)"
    )
    assert times and not any("UTC" in one for one in times)


def test_the_code_turns_into_the_card_when_a_phone_has_taken_it(visit, page, faber):
    made = faber.defines("name", name="Member")
    body = {"definitionId": made["definitionId"], "credentialValues": {"name": "Ada"}}
    offer = faber.post("/credentials", body)
    page.stop_clock()
    page = visit(Credential.objects.get(pk=offer["credentialId"]))
    assert page.evaluate("!!document.querySelector('#live .qr')")
    faber.hosts("Alice").put_form(
        "/credentials/fromData", credentialData=offer["offerUrl"]
    )
    page.pass_time(TO_LOOK)
    page.wait_for("!document.querySelector('#live .qr')")
    assert page.evaluate("!!document.querySelector('#live .id-card.turned')")


def test_an_unchanged_page_is_not_swapped(visit, page, walk):
    page.stop_clock()
    page = visit(walk.offers()["issuer"])
    page.evaluate("document.getElementById('live').mark = true")
    page.pass_time(TO_LOOK)
    eventually(lambda: page.reads("/live?"))
    assert page.evaluate("document.getElementById('live').mark") is True


def test_without_scripts_everything_is_there(visit, page, rows):
    page.stop_scripts()
    text = visit(rows["credential"]).evaluate("document.body.innerText")
    for words in (
        "Not accepted yet",
        "Look again",
        "Cancel the offer",
        "Reveal",
        "JSON",
    ):
        assert words in text
    assert "Copy" not in text
