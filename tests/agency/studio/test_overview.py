"""The overview shows what happened on each day, and the newest events, by itself."""

import re
from datetime import UTC, timedelta
from html import unescape

import pytest
from django.utils import timezone

from connections.models import Connection
from tests.agency.studio.conftest import read
from tests.factories import DailyUsageFactory

pytestmark = pytest.mark.django_db(transaction=True)
TOTAL = re.compile(r"<figcaption>([^<]+) <strong>(\d+)</strong>")


def totals(page):
    return {name: int(number) for name, number in TOTAL.findall(page)}


def test_the_days_are_counted_and_drawn(browser, url, college):
    today = timezone.now().astimezone(UTC).date()
    tenant = college.tenant
    for days, number in ((0, 1), (6, 2), (7, 4), (29, 8), (30, 16)):
        day = today - timedelta(days=days)
        DailyUsageFactory(tenant=tenant, day=day, offers=number)
    week, month = read(browser, url), read(browser, f"{url}?days=30")
    assert totals(week) == {
        "Offers": 3, "Issued": 0, "Valid proofs": 0, "Proofs not valid": 0,
    }  # fmt: skip
    assert totals(month)["Offers"] == 15
    assert week.count("<rect") == 2 and month.count("<rect") == 4
    assert 'height="100"' in week, "the highest bar"
    assert week.count('<th scope="row">') == 7
    assert month.count('<th scope="row">') == 30
    assert totals(read(browser, f"{url}?days=1000000")) == totals(week)


def test_a_chart_says_in_words_what_it_shows(browser, url, college):
    DailyUsageFactory(tenant=college.tenant, valid_proofs=3)
    page = read(browser, url)
    [chart] = re.findall(r'<figure class="chart valid_proofs">.*?</figure>', page, re.S)
    assert 'role="img"' in chart and "Valid proofs of 7 days: 3" in chart
    for name in re.search('aria-labelledby="([^"]+)"', chart)[1].split():
        assert f'id="{name}"' in chart


def live_address(page):
    address = re.search(r'id="live".* hx-get="([^"]+)"', page)[1]
    return address.replace("&amp;", "&")


def test_the_live_part_is_sent_again_once_it_has_changed(browser, url, api):
    page = read(browser, f"{url}?days=30")
    assert "Nothing happened yet" in page
    live = live_address(page)
    assert browser.get(live).status_code == 204
    invited = api.post("/connections", {"name": "Alice"})
    part = read(browser, live)
    assert "<html" not in part
    newest = part.partition('id="newest-events"')[2]
    assert invited["connectionId"] in newest
    [event] = re.findall(rf'href="({url}/events/[\w-]+)"', newest)
    assert browser.get(event).status_code == 200
    assert part.count('<th scope="row">') == 30, "the period stays"
    assert browser.get(live_address(part)).status_code == 204


def test_the_newest_events_are_few_and_the_newest_first(browser, url, api):
    made = [api.post("/connections", {})["connectionId"] for _ in range(10)]
    newest = read(browser, url).partition('id="newest-events"')[2]
    assert re.findall(' title="([^"]+)">', newest)[:8] == made[:1:-1]


def test_a_step_in_a_wallet_hosted_here_is_no_second_event(browser, url, api):
    alice, definition = api.hosts("Bob"), api.defines("name")
    alice.receives(api, definition, {"name": "Bob"})
    newest = read(browser, url).partition('id="newest-events"')[2]
    assert newest.count("The credential was issued") == 1
    assert newest.count("The holder has accepted the offer") == 1
    assert "An offer has arrived" not in newest


def test_it_says_what_became_of_the_offers_and_how_many_checks_were_valid(
    browser, url, college, api
):
    assert 'class="funnel"' not in read(browser, url)
    alice, definition = api.hosts("Bob"), api.defines("name")
    alice.receives(api, definition, {"name": "Bob"})
    api.offers(alice, definition, {"name": "Bob"})
    DailyUsageFactory(tenant=college.tenant, valid_proofs=2, invalid_proofs=1)
    page = read(browser, url)
    assert f'href="{url}/verifications?state=Not+valid">Checks that were' in page
    [funnel] = re.findall('<ul class="funnel">.*?</ul>', page, re.S)
    words = " ".join(re.sub("<[^>]+>", " ", funnel).split())
    assert words == "Offered 2 Accepted 1 50 % In use 1 50 % Valid checks 66 %"


def test_what_waits_longest_leads_to_its_page(browser, url, api):
    assert 'id="waiting"' not in read(browser, url)
    alice, definition = api.hosts("Bob"), api.defines("name", name="Badge")
    offers = [api.offers(alice, definition, {"name": "Bob"}) for _ in range(2)]
    api.asks(alice, attributes=[{"policyName": "name"}])
    later = api.offers(alice, definition, {"name": "Bob"})
    waiting = read(browser, url).partition('id="waiting"')[2].partition("</section>")[0]
    assert waiting.count("<li>") == 3 and "Request without an answer" in waiting
    assert "Offer without an answer: <bdi>Badge</bdi>" in waiting
    assert all(f"/{one['credentialId']}" in waiting for one in offers)
    assert later["credentialId"] not in waiting
    for address in re.findall('href="([^"]+)"', waiting):
        assert browser.get(address).status_code == 200


WAITING = re.compile(r"<li>(.*?)</li>", re.S)


def waiting_in_words(page):
    shown = page.partition('id="waiting"')[2].partition("</section>")[0]
    words = (
        re.sub(r"<time.*?</time>|<[^>]+>", "", row) for row in WAITING.findall(shown)
    )
    return [" ".join(unescape(row).split()) for row in words]


def test_what_waits_longest_begins_with_whom(browser, viewer, url, api):
    card = api.defines("name", name="Badge", recipientAttribute="name")
    offer = {"definitionId": card["definitionId"]}
    for name in ("Ann \u202eLee", "Bo"):
        api.post("/credentials", offer | {"credentialValues": {"name": name}})
    asked = api.asks(api.hosts("Carol"), attributes=[{"policyName": "name"}])
    offers = "· Offer without an answer: Badge since"
    seen = waiting_in_words(read(browser, url))
    assert seen[:2] == [f"Ann \u202eLee by link {offers}", f"Bo by link {offers}"]
    assert seen[2].endswith("· Request without an answer since")
    person = f'href="{url}/connections/'
    waiting = read(browser, url).partition('id="waiting"')[2]
    assert person in waiting and "<bdi>Ann \u202eLee</bdi>" in waiting
    hidden = waiting_in_words(read(viewer, url))
    assert hidden[2] == seen[2]
    # Even so they can be told apart.
    masked = {row.partition(" by link …")[0] for row in hidden[:2]}
    assert masked == {"••••••"} and hidden[0] != hidden[1]
    assert asked["verificationId"] in waiting


def test_what_waits_for_nobody_known_is_told_apart_by_its_reference(browser, url, api):
    card = api.defines("name", name="Badge")
    offer = {"definitionId": card["definitionId"], "credentialValues": {"name": "Bo"}}
    for reference in ("order 1", "<b>", ""):
        made = api.post("/credentials", offer | {"reference": reference})
    shown = [row.partition(" ·")[0] for row in waiting_in_words(read(browser, url))]
    assert shown == [
        "By link order 1", "By link <b>", f"By link …{made['credentialId'][-6:]}",
    ]  # fmt: skip
    deleted = Connection.objects.filter(connectionless=True)
    deleted.update(deleted_at=timezone.now())
    assert waiting_in_words(read(browser, url))[0].startswith("Deleted order 1")
