"""The timeline: messages in and out, events and the calls of webhooks."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from connections.messaging.outbox import THREAD_ENDED
from connections.models import Connection, InboundMessage, OutboundMessage
from credentials.models import Credential
from tests.agency.studio.exchange.conftest import text, url_of
from tests.support import outside_agent, queues, walks
from tests.support.outside_exchanges import offered_to, takes_offer
from webhooks.delivery import due, recording, recovery
from webhooks.delivery.outcomes import Outcome, Result
from webhooks.models import Delivery

MAX_QUERIES = 12


def words_of(page):
    return re.findall(r'<p class="line"><strong>([^<]+)</strong>', page)


@pytest.fixture
def issued(phone, faber, client):
    """A credential issued to an outside agent, and its API path."""
    definition, path = offered_to(phone, faber, automaticIssuance=True)
    takes_offer(phone, client, definition["definitionId"])
    return Credential.objects.get(role="issuer")


def test_messages_of_the_thread_are_named_in_words_newest_first(browser, issued):
    page = text(browser.get(url_of(issued)))
    found = words_of(page)
    order = [
        "Confirmation of the credential", "Credential",
        "Request for the offered credential", "Offer of a credential",
    ]  # fmt: skip
    assert [one for one in found if one in order] == order
    assert {"The credential was offered", "The credential was issued"} <= set(found)
    handshake = {"Request to connect", "Answer to the request to connect"}
    assert not handshake & set(found) and "trust_ping" not in page
    assert handshake <= set(words_of(text(browser.get(url_of(issued.connection)))))
    # A message that was withdrawn was neither sent nor did it fail.
    sent = OutboundMessage.objects.filter(type__endswith="offer-credential")
    assert sent.update(last_error=THREAD_ENDED) == 1
    page = text(browser.get(url_of(issued)))
    assert "Withdrawn" in page and "The other side ended the exchange" in page
    assert "attempt" not in page


def test_an_event_names_the_api_call_that_caused_it(browser, faber):
    call = {"X-Request-Id": "order-4711"}
    invited = faber.call("post", "/connections", {}, **call)
    row = Connection.objects.get(connection_id=invited["connectionId"])
    assert "API call <code>order-4711." in text(browser.get(url_of(row)))


def test_who_shares_an_invitation_sees_only_the_own_request(browser, phone, faber):
    invited = faber.invites(multiParty=True)
    shared = Connection.objects.get(connection_id=invited["connectionId"])
    phone.accepts(shared)
    with outside_agent.listening(outside_agent.Agent()) as other:
        other.accepts(shared)
    spawned = Connection.objects.filter(multi_party=False)
    assert spawned.count() == 2
    for row, number in ((shared, 2), *((row, 1) for row in spawned)):
        words = words_of(text(browser.get(url_of(row))))
        assert words.count("Request to connect") == number


def test_texts_between_wallets_here_are_listed_without_their_words(browser, walk):
    row = walks.connection(walk, "inviter", "Connected")
    body = {"connectionId": row.connection_id, "text": "Balthazar-4711"}
    walk.faber.post("/messages", body)
    page = text(browser.get(url_of(row)))
    assert words_of(page)[0] == "Text message"
    assert "Balthazar" not in page
    assert queries(browser, url_of(row)) <= MAX_QUERIES


def test_the_exchanges_over_a_connection_are_linked(browser, walk):
    walk.asks()
    issuer = walk.offers()["issuer"]
    page = text(browser.get(url_of(issuer.connection)))
    found = re.findall(r'href="([^"]+)">(Credential|Verification), ([^<]+)</a>', page)
    kinds = [one[1:] for one in found]
    assert kinds == [
        ("Credential", "Not accepted yet"),
        ("Verification", "Not answered yet"),
    ]
    assert found[0][0] == url_of(issuer)
    assert queries(browser, url_of(issuer.connection)) <= MAX_QUERIES


def test_a_transport_error_is_said_with_its_code_and_attempts(browser, phone, faber):
    row = phone.connects(faber)
    faber.post("/messages", {"connectionId": row.connection_id, "text": "Hello"})
    sent = OutboundMessage.objects.filter(type="basicmessage/1.0/message")
    later = timezone.now() + timedelta(hours=1)
    sent.update(attempts=2, last_error="endpoint_unreachable", due_at=later)
    page = text(browser.get(url_of(row)))
    assert "The address could not be reached. <code>endpoint_unreachable" in page
    assert "2 failed attempts" in page and "next <time" in page
    sent.update(status="exhausted")
    assert "3 failed attempts" in text(browser.get(url_of(row)))
    assert "Given up" in text(browser.get(url_of(row)))


def test_the_calls_of_webhooks_stand_below_their_event(browser, faber, settings):
    settings.OUTGOING_ALLOW_LOOPBACK, settings.WEBHOOK_REQUIRE_HTTPS = True, False
    url = "http://127.0.0.1:3000/office"
    faber.post("/webhooks", {"url": url, "messageTypes": ["connection_invited"]})
    row = Connection.objects.get(connection_id=faber.invites()["connectionId"])
    delivery = Delivery.objects.select_related("webhook", "event").get()
    due.lease_all([delivery])
    outcome = Outcome(
        Result.FAILED, timezone.now(), 0.25, "endpoint_refused", 503, b"Sorry"
    )
    recording.record_outcomes([(delivery, outcome)])
    page = text(browser.get(url_of(row)))
    assert url in page
    assert "The address answered with an error status." in page
    assert re.search(r"Call 1 · <time.*?</time>\s+· 250 ms · .*503", page)
    assert "Sorry" not in page
    webhook = faber.get("/webhooks")[0]["id"]
    faber.put(f"/webhooks/{webhook}/disable")
    recovery.run_maintenance()
    page = text(browser.get(url_of(row)))
    assert "The webhook was switched off before it was called." in page


def queries(browser, path):
    browser.get(path)
    with CaptureQueriesContext(connection) as captured:
        assert browser.get(path).status_code == 200
    bounds = ("BEGIN", "COMMIT")
    return len([one for one in captured if one["sql"] not in bounds])


def test_few_queries_read_any_number_of_messages(browser, phone, faber):
    row = phone.connects(faber)
    phone.says(phone.build("trust_ping/1.0/ping"))
    queues.sweep()
    few = queries(browser, url_of(row))
    template = InboundMessage.objects.filter(type="trust_ping/1.0/ping").get()
    for number in range(50):
        template.pk, template.message_id = None, f"ping {number}"
        template._state.adding = True
        template.id = InboundMessage().id
        template.save(force_insert=True)
    assert words_of(text(browser.get(url_of(row)))).count("Ping") == 50
    assert queries(browser, url_of(row)) == few <= MAX_QUERIES
    assert queries(browser, f"{url_of(row)}/live") <= MAX_QUERIES
