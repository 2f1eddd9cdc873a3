"""Events, webhooks and deliveries in the studio."""

import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone
from uuid_utils.compat import uuid7

from agency.studio import events, newest_first
from connections.models import Connection
from connections.protocols import handshakes
from tenants import vault
from tenants.models import AuditEntry
from tests.agency.studio.conftest import browser_with
from webhooks.delivery import claim, due, recording
from webhooks.delivery.examples import send_example
from webhooks.delivery.health import disable_by_hand
from webhooks.delivery.outcomes import Outcome, Result
from webhooks.models import Delivery, Event, Webhook

SECRET = re.compile(r"whsec_[A-Za-z0-9+/=]{40,}")
ANSWER = b"<b>Out of order</b> since Monday"


@pytest.fixture
def office(college, settings):
    settings.OUTGOING_ALLOW_LOOPBACK, settings.WEBHOOK_REQUIRE_HTTPS = True, False
    kinds = {"type": "Notification", "dialect": "client"}
    kinds["message_types"] = ["connection_invited"]
    return Webhook.register(college.tenant, "http://127.0.0.1:3000/office", **kinds)


@pytest.fixture
def invite(college):
    def invite(name):
        handshakes.invite(college.tenant.wallets.get(), name)
        return Event.objects.get(object_id=name)

    return invite


@pytest.fixture
def delivery(office, invite):
    """One that was called once, and refused."""
    event = invite("lobby")
    row = Delivery.objects.select_related("webhook", "event").get(event=event)
    due.lease_all([row])
    outcome = Outcome(
        Result.FAILED, timezone.now(), 0.25, "endpoint_refused", 503, ANSWER
    )
    recording.record_outcomes([(row, outcome)])
    return Delivery.objects.get(pk=row.pk)


@pytest.fixture
def shown(url, office, delivery):
    """The pages of webhooks and events."""
    webhook = f"{url}/webhooks/{office.pk}"
    names = ("", "/secret", "/remove", f"/deliveries/{delivery.pk}")
    events = (f"{url}/events", f"{url}/events/{delivery.event_id}")
    return [*events, f"{url}/webhooks", *(f"{webhook}{name}" for name in names)]


def text(response):
    assert response.status_code == 200
    return response.text


@pytest.fixture
def webhook(url, office):
    """The address of its page."""
    return f"{url}/webhooks/{office.pk}"


@pytest.fixture
def call(webhook, delivery):
    """The address of the page of the delivery."""
    return f"{webhook}/deliveries/{delivery.pk}"


def test_events_are_listed_with_their_deliveries(browser, url, call, invite):
    invite("garden")
    page = text(browser.get(f"{url}/events"))
    assert page.index("garden") < page.index("lobby")
    assert call in page and "Pending" in page


def test_events_are_filtered_and_read_page_by_page(browser, url, invite, monkeypatch):
    monkeypatch.setattr(newest_first, "PAGE_SIZE", 2)
    for number in range(3):
        invite(f"room{number}")
    first = text(browser.get(f"{url}/events"))
    assert "room2" in first and "room0" not in first and "Newer" not in first
    [query] = re.findall(r'href="\?(before=[^"]+)"', first)
    older = text(browser.get(f"{url}/events?{query}"))
    assert "room0" in older and "room1" not in older and "Older" not in older
    [query] = re.findall(r'href="\?(after=[^"]+)"', older)
    assert "room2" in text(browser.get(f"{url}/events?{query}"))
    assert "room0" in text(browser.get(f"{url}/events?object_id=room0"))
    page = text(browser.get(f"{url}/events?type=verification"))
    assert "No event is like that" in page
    assert text(browser.get(f"{url}/events?type=x&before=y"))


def test_an_event_shows_its_body_object_call_and_receivers(browser, url, delivery):
    Event.objects.update(request_id="order-4711")
    row = Event.objects.get(pk=delivery.event_id)
    page = text(browser.get(f"{url}/events/{row.pk}"))
    for shown in (
        "&quot;message_type&quot;: &quot;connection_invited&quot;",
        "http://127.0.0.1:3000/office",
        f'href="{url}/connections/{row.object_key}"',
        "<code>order-4711</code>",
    ):
        assert shown in page
    assert browser.get(f"{url}/connections/{row.object_key}").status_code == 200


def test_a_delivery_shows_each_call_and_its_answer(browser, call, delivery):
    page = text(browser.get(call))
    for word in ("503", "250 ms", "endpoint_refused", "&lt;b&gt;Out of order&lt;"):
        assert word in page
    assert "<b>Out" not in page
    of_another = call.replace(str(delivery.webhook_id), str(uuid4()))
    assert browser.get(of_another).status_code == 404


def test_a_webhook_is_made_and_its_secret_shown_once(browser, url, office):
    form = {"url": "http://127.0.0.1:3000/hooks", "message_types": ["verification"]}
    [secret] = SECRET.findall(text(browser.send(f"{url}/webhooks/new", **form)))
    made = Webhook.objects.exclude(pk=office.pk).get()
    assert vault.unseal(made, "secret") == secret
    assert (made.message_types, made.retry_unconfirmed) == (["verification"], None)
    assert secret not in text(browser.get(f"{url}/webhooks/{made.pk}"))


def test_what_becomes_of_unanswered_calls_is_chosen(browser, url, office):
    hook = {"url": "http://127.0.0.1:3000/hooks"}
    for chosen, kept in (("", None), ("yes", True), ("no", False)):
        browser.send(f"{url}/webhooks/new", **hook, retry_unconfirmed=chosen)
        assert Webhook.objects.latest("pk").retry_unconfirmed is kept
    browser.send(f"{url}/webhooks/new", **hook)
    page = text(browser.send(f"{url}/webhooks/new", **hook))
    assert "You have 5 webhooks" in page and not SECRET.search(page)


def test_how_many_events_a_call_may_have_is_chosen(browser, url, office):
    hook = {"url": "http://127.0.0.1:3000/hooks"}
    for chosen, kept in (("", None), ("1", 1), ("100", 100)):
        browser.send(f"{url}/webhooks/new", **hook, batch=chosen)
        made = Webhook.objects.latest("pk")
        assert made.batch == kept
    page = text(browser.get(f"{url}/webhooks/{made.pk}"))
    assert "At most 100, as a list" in page
    for wrong in ("0", "101", "many"):
        page = text(browser.send(f"{url}/webhooks/new", **hook, batch=wrong))
        assert 'id="id_batch_error"' in page


def test_the_page_says_where_events_wait_for_the_receiver(
    browser, webhook, office, settings
):
    settings.WEBHOOK_THREADS = 16
    for _ in range(5):
        send_example(office, "verification")
    Delivery.pending().update(due_at=timezone.now() - timedelta(seconds=11))
    assert "Events wait for this address" not in text(browser.get(webhook))
    claim.claim_due(16, 4)
    page = text(browser.get(webhook))
    assert "Events wait for this address" in page and "(4 at most)" in page
    assert "batch" in page
    Delivery.pending().exclude(lease_owner=None).update(status="done")
    assert "Events wait for this address" not in text(browser.get(webhook))


def test_an_address_that_is_never_called_is_refused_beside_its_field(browser, url):
    for address in ("", "ftp://x.example", "http://u:p@x.example", "nonsense"):
        page = text(browser.send(f"{url}/webhooks/new", url=address))
        assert 'id="id_url_error"' in page, address
    assert not Webhook.objects.exists()


def test_a_rotated_secret_is_shown_once_and_the_old_signs_on(browser, webhook, office):
    old = vault.unseal(office, "secret")
    [new] = SECRET.findall(text(browser.send(f"{webhook}/secret")))
    assert Webhook.objects.get().signing_secrets() == [new, old]
    page = text(browser.get(webhook))
    assert "Signs too until" in page and not SECRET.search(page)


def test_it_is_disabled_and_enabled(browser, webhook):
    browser.send(f"{webhook}/disable")
    assert not Webhook.objects.get().is_enabled
    page = text(browser.get(webhook))
    assert "Disabled" in page and "Send example" not in page
    browser.send(f"{webhook}/enable")
    assert Webhook.objects.get().is_enabled
    Webhook.objects.update(type=Webhook.Type.DELEGATED_ENDORSER)
    page = text(browser.get(webhook))
    assert "Send example" not in page and "Send what failed" not in page
    assert "never called" in page


def test_an_example_is_sent_and_links_no_object(browser, url, webhook):
    assert browser.send(f"{webhook}/example", type="verification").status_code == 302
    [sent] = Delivery.objects.select_related("event")
    assert (sent.event.is_example, sent.event.type) == (True, "verification")
    assert "Example" in text(browser.get(webhook))
    page = text(browser.get(f"{url}/events/{sent.event_id}"))
    assert f"verifications/{sent.event.object_key}" not in page


def test_failed_calls_are_recovered(browser, webhook):
    for since, days in (("day", 1), ("missed", 5)):
        browser.send(f"{webhook}/recover", since=since, unconfirmed="on")
        found = Webhook.objects.get()
        ago = timezone.now() - found.recover_since - timedelta(days=days)
        assert abs(ago) < timedelta(minutes=2)
        assert found.recover_unconfirmed


def test_one_is_sent_again_at_once_with_the_same_event(browser, call, delivery):
    later = timezone.now() + timedelta(days=1)
    Delivery.objects.update(status="exhausted", due_at=later)
    browser.send(f"{call}/resend")
    row = Delivery.objects.get()
    assert (row.status, row.attempts) == ("pending", 0)
    assert row.event_id == delivery.event_id and row.due_at <= timezone.now()


def test_what_is_called_or_disabled_is_not_sent_again(browser, call, office):
    soon = timezone.now() + timedelta(minutes=1)
    Delivery.objects.update(lease_owner=uuid4(), lease_until=soon)
    browser.send(f"{call}/resend")
    page = text(browser.get(call))
    assert "being called right now" in page and "It is sent again" not in page
    assert not AuditEntry.objects.filter(action="delivery.resent").exists()
    Delivery.objects.update(lease_owner=None, lease_until=None)
    disable_by_hand(office)
    browser.send(f"{call}/resend")
    assert "Enable it, then try again" in text(browser.get(call))


def test_a_webhook_is_deleted_after_a_question(browser, webhook, office):
    assert office.url in text(browser.get(f"{webhook}/remove"))
    assert Webhook.objects.exists()
    browser.send(f"{webhook}/remove")
    assert not Webhook.objects.exists()


def test_a_form_sent_twice_counts_once(browser, url, office):
    form = {"url": "http://127.0.0.1:3000/hooks", "form_token": "1"}
    assert SECRET.search(text(browser.post(f"{url}/webhooks/new", form)))
    assert not SECRET.search(
        text(browser.post(f"{url}/webhooks/new", form, follow=True))
    )
    assert Webhook.objects.count() == 2


def test_no_page_shows_a_secret(browser, shown):
    for path in shown:
        assert not SECRET.search(text(browser.get(path))), path


@pytest.mark.parametrize("role, sees_all", [("developer", True), ("operator", False)])
def test_only_developers_see_addresses(college, url, office, shown, role, sees_all):
    Webhook.objects.update(url="http://127.0.0.1:3000/office?token=SECRET")
    someone = browser_with(role, college.tenant)
    lobby = f"{url}/connections/{Connection.objects.get(connection_id='lobby').pk}"
    more = (f"{url}/search?q=127.0.0.1", lobby, f"{lobby}/live")
    events, *pages = (one for one in shown if not re.search("/(secret|remove)$", one))
    for page in (*pages, *more):
        found = text(someone.get(page))
        assert ("token=SECRET" in found) is sees_all, page
        assert sees_all or "http://127.0.0.1:3000/…" in found, page
    assert "SECRET" not in text(someone.get(events))
    found = text(someone.get(f"{url}/search?q=SECR"))
    assert (str(office.pk) in found) is sees_all


def test_a_page_of_events_has_so_many_deliveries_of_each(
    browser, url, delivery, monkeypatch, django_assert_max_num_queries
):
    monkeypatch.setattr(events, "MAX_BADGES", 2)
    monkeypatch.setattr(events, "MAX_DELIVERIES", 3)
    webhook = Webhook.objects.get()
    for _ in range(3):
        webhook.pk = delivery.pk = uuid7()
        webhook.save(force_insert=True)
        delivery.webhook = webhook
        delivery.save(force_insert=True)
    with django_assert_max_num_queries(12):
        page = text(browser.get(f"{url}/events"))
    assert len(re.findall(r"/deliveries/", page)) == 2
    assert f'/events/{delivery.event_id}">more</a>' in page
    page = text(browser.get(f"{url}/events/{delivery.event_id}"))
    assert len(re.findall(r"/deliveries/", page)) == 3
    assert "Older ones are on the pages of the webhooks." in page
