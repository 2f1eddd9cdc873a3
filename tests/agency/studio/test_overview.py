"""The overview shows what happened on each day, and the newest events, by itself."""

import re
from datetime import UTC, timedelta

import pytest
from django.utils import timezone

from tenants.models import DailyUsage
from tests.support.people import Api

pytestmark = pytest.mark.django_db(transaction=True)
TOTAL = re.compile(r"<figcaption>([^<]+) <strong>(\d+)</strong>")


@pytest.fixture
def api(college):
    return Api(college.access_token, college.subscription_key)


def totals(response):
    return {name: int(number) for name, number in TOTAL.findall(read(response))}


def read(response):
    return response.content.decode()


def test_the_days_are_counted_and_drawn(browser, url, college):
    today = timezone.now().astimezone(UTC).date()
    tenant = college.tenant
    for days, number in ((0, 1), (6, 2), (7, 4), (29, 8), (30, 16)):
        DailyUsage.objects.create(
            tenant=tenant, day=today - timedelta(days=days), offers=number
        )
    week, month = browser.get(url), browser.get(f"{url}?days=30")
    assert totals(week) == {
        "Offers": 3, "Issued": 0, "Valid proofs": 0, "Proofs not valid": 0,
    }  # fmt: skip
    assert totals(month)["Offers"] == 15
    assert read(week).count("<rect") == 2 and read(month).count("<rect") == 4
    assert 'height="100"' in read(week), "the highest bar"
    assert read(week).count('<th scope="row">') == 7
    assert read(month).count('<th scope="row">') == 30
    assert totals(browser.get(f"{url}?days=1000000")) == totals(week)


def test_a_chart_says_in_words_what_it_shows(browser, url, college):
    DailyUsage.objects.create(
        tenant=college.tenant, day=timezone.now().astimezone(UTC), valid_proofs=3
    )
    page = read(browser.get(url))
    [chart] = re.findall(
        r'<figure class="chart valid_proofs">.*?</figure>', page, re.S
    )
    assert 'role="img"' in chart and "Valid proofs of 7 days: 3" in chart
    for name in re.search('aria-labelledby="([^"]+)"', chart)[1].split():
        assert f'id="{name}"' in chart


def live_address(response):
    address = re.search(r'id="live".* hx-get="([^"]+)"', read(response))[1]
    return address.replace("&amp;", "&")


def test_the_live_part_is_sent_again_once_it_has_changed(browser, url, api):
    page = browser.get(f"{url}?days=30")
    assert "Nothing happened yet" in read(page)
    live = live_address(page)
    assert browser.get(live).status_code == 204
    invited = api.post("/connections", {"name": "Alice"})
    part = browser.get(live)
    assert part.status_code == 200 and "<html" not in read(part)
    newest = read(part).partition('id="newest-events"')[2]
    assert invited["connectionId"] in newest
    [event] = re.findall(rf'href="({url}/events/[\w-]+)"', newest)
    assert browser.get(event).status_code == 200
    assert read(part).count('<th scope="row">') == 30, "the period stays"
    assert browser.get(live_address(part)).status_code == 204


def test_the_live_part_is_for_members(stranger, viewer, url):
    assert stranger.get(f"{url}/live").status_code == 404
    assert viewer.get(f"{url}/live").status_code == 200


def test_the_newest_events_are_few_and_the_newest_first(browser, url, api):
    made = [api.post("/connections", {})["connectionId"] for _ in range(10)]
    newest = read(browser.get(url)).partition('id="newest-events"')[2]
    assert re.findall("<code>([^<]+)</code>", newest)[:8] == made[:1:-1]
