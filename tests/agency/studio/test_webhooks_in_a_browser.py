"""A failing webhook in Chromium: it is seen, mended, and gets what it missed."""

import pytest

from tests.support import chromium
from tests.support.people import Organization
from tests.support.webhook_receiver import receiving, worker_calls

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium"),
]
BADGE = "document.querySelector('main .badge').textContent"


@pytest.fixture
def tab(browser, live_server, settings, tmp_path):
    """A tab in which Fay is signed in."""
    settings.PUBLIC_URL = live_server.url
    settings.OUTGOING_ALLOW_LOOPBACK, settings.WEBHOOK_REQUIRE_HTTPS = True, False
    with chromium.running(tmp_path) as page:
        cookie = browser.cookies[settings.SESSION_COOKIE_NAME].value
        page.set_cookie(live_server.url, settings.SESSION_COOKIE_NAME, cookie)
        yield page
        page.call("Page.navigate", url="about:blank")


def text_of(page):
    return page.evaluate("document.querySelector('main').textContent")


def test_a_failing_webhook_is_seen_mended_and_sent_again(
    tab, fay, stored_keys, live_server, settings
):
    school = Organization("School", owner=fay)
    with receiving() as receiver:
        receiver.answers(500, b"Out of order")
        wanted = {"url": receiver.url, "messageTypes": ["connection_invited"]}
        school.post("/webhooks", wanted)
        school.invites(name="Alice")
        worker_calls()
        assert len(receiver.calls) == 1
        # Seen on the overview, on the page of the webhook and on that of the delivery.
        home = f"{live_server.url}/studio/organizations/{school.tenant.pk}"
        tab.open(home)
        tab.tab.click("section[aria-labelledby=attention] a")
        tab.wait_for("document.querySelector('h1').className === 'address'")
        assert "Every call has failed since" in text_of(tab)
        tab.tab.click(".deliveries td a")
        tab.wait_for("!!document.querySelector('#attempts')")
        assert tab.evaluate(BADGE) == "Pending"
        assert "500" in text_of(tab) and "Out of order" in text_of(tab)
        # The receiver is mended, and the delivery sent again.
        receiver.answers(200, b"Thank you")
        tab.tab.click("text=Send again")
        tab.wait_for("document.body?.textContent.includes('It is sent again')")
        worker_calls()
        tab.tab.reload()
        assert tab.evaluate(BADGE) == "Delivered"
        assert "Thank you" in text_of(tab)
        first, second = receiver.calls
        assert first.data == second.data
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        tab.open(home)
        assert not tab.evaluate("!!document.querySelector('#attention')")
