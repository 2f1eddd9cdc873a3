"""The lists of events and of deliveries show what comes, and are filtered by status."""

import re
from html import unescape

import pytest
from django.urls import reverse

from tests.support.people import Organization
from tests.support.webhook_receiver import receiving, worker_calls
from webhooks.models import Delivery

pytestmark = pytest.mark.django_db(transaction=True)
PART = {"HX-Request": "true"}


@pytest.fixture
def school(fay, stored_keys, settings):
    settings.OUTGOING_ALLOW_LOOPBACK, settings.WEBHOOK_REQUIRE_HTTPS = True, False
    return Organization("School", owner=fay)


def part_of(response):
    [found] = re.findall(r'data-watched hx-get="([^"]*)"', response.text)
    return unescape(found)


def test_the_first_page_of_events_shows_what_comes(browser, school):
    school.invites(name="Alice")
    events = reverse("studio:events", args=[school.tenant.pk])
    part = part_of(browser.get(events))
    assert browser.get(part, headers=PART).status_code == 204
    school.invites(name="Bob")
    changed = browser.get(part, headers=PART)
    assert changed.content.count(b'id="event-') == 2
    assert b"<html" not in changed.content
    assert b"data-watched" not in browser.get(events, {"paused": "1"}).content


def test_a_delivery_is_shown_once_done_and_found_by_its_status(browser, school):
    with receiving() as receiver:
        wanted = {"url": receiver.url, "messageTypes": ["connection_invited"]}
        hook = school.post("/webhooks", wanted)["id"]
        school.invites(name="Alice")
        address = reverse("studio:webhook", args=[school.tenant.pk, hook])
        before = browser.get(address)
        assert b"0 of 1 are delivered" in before.content
        worker_calls()
        changed = browser.get(part_of(before), headers=PART)
        assert b"1 of 1 are delivered" in changed.content
        assert b">Delivered<" in changed.content
    delivered = browser.get(address, {"status": Delivery.Status.DONE})
    assert delivered.content.count(b'id="delivery-') == 1
    lost = browser.get(address, {"status": Delivery.Status.EXHAUSTED})
    assert b'id="delivery-' not in lost.content
    assert b"No delivery is like that" in lost.content


def test_a_delivery_says_how_to_check_its_signature(browser, school):
    hook = school.post("/webhooks", {"url": "http://127.0.0.1:3000/hooks"})["id"]
    example = {"messageType": "verification"}
    sent = school.post(f"/webhooks/{hook}/example", example)["deliveryId"]
    address = reverse("studio:delivery", args=[school.tenant.pk, hook, sent])
    shown = browser.get(address).text
    event = Delivery.objects.get(pk=sent).event
    assert f"<dt>webhook-id</dt><dd><code>{event.message_id}</code>" in shown
    assert "{webhook-id}.{webhook-timestamp}.{body}" in shown
