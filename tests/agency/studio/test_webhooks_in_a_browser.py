"""A failing webhook in Chromium: it is seen, mended, and gets what it missed."""

from tests.support.chromium import MARKS
from tests.support.people import Organization
from tests.support.webhook_receiver import receiving, worker_calls

pytestmark = MARKS


def test_a_failing_webhook_is_seen_mended_and_sent_again(
    page, browser, fay, stored_keys, settings
):
    settings.OUTGOING_ALLOW_LOOPBACK, settings.WEBHOOK_REQUIRE_HTTPS = True, False
    page.sign_in(browser)
    school = Organization("School", owner=fay)
    with receiving() as receiver:
        receiver.answers(500, b"Out of order")
        wanted = {"url": receiver.url, "messageTypes": ["connection_invited"]}
        school.post("/webhooks", wanted)
        school.invites(name="Alice")
        worker_calls()
        assert len(receiver.calls) == 1
        # Seen on the overview, on the page of the webhook and on that of the delivery.
        home = f"/studio/organizations/{school.tenant.pk}"
        page.open(home)
        page.tab.click("section[aria-labelledby=attention] a")
        page.wait_for("document.querySelector('h1').className === 'address'")
        assert "Every call has failed since" in page.text()
        page.tab.click(".deliveries td a")
        page.wait_for("!!document.querySelector('#attempts')")
        assert page.text("main .badge") == "Pending"
        assert "500" in page.text() and "Out of order" in page.text()
        # The receiver is mended, and the delivery sent again.
        receiver.answers(200, b"Thank you")
        page.tab.click("text=Send again")
        page.wait_for("document.body?.textContent.includes('It is sent again')")
        worker_calls()
        page.tab.reload()
        assert page.text("main .badge") == "Delivered"
        assert "Thank you" in page.text()
        first, second = receiver.calls
        assert first.data == second.data
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        page.open(home)
        assert not page.evaluate("!!document.querySelector('#attention')")
