"""GET /events from a cursor, oldest first.

Nothing is missed, in any order of commits.
"""

import pkgutil
import re
from datetime import timedelta
from threading import Event as Signal

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from connections.models import Connection
from connections.protocols import handshakes
from core.database.uuids import smallest_uuid7
from credentials.models import Credential
from tenants import vault
from tests.support.errors import assert_error
from tests.support.races import during, elsewhere, threads
from tests.support.webhook_receiver import send_example
from webhooks.events import feed
from webhooks.models import Event

VALUES = {"name": "Alice", "level": "7"}


def ids(events):
    return [event["objectId"] for event in events]


def settled(tenant, start=feed.FIRST_POSITION, count=100):
    """What a page has, and the position after it."""
    page = feed.read_page(feed.events_of(tenant), start, count)
    return [event.object_id for event in page.events], page.position


class Reader:
    """Polls, and goes on each time where `Link` says."""

    def __init__(self, organization, query="limit=2"):
        self.organization, self.path = organization, f"/events?{query}"

    def next(self):
        response = self.organization.send("get", self.path)
        assert response.status_code == 200, response.content
        [target] = re.findall(
            r'^<http://[^/]+(/[^>]+)>; rel="next"$', response.headers["Link"]
        )
        self.path = target
        return response.json()

    def all(self):
        found = []
        while events := self.next():
            found += events
        return found


def test_an_event_shows_what_its_webhooks_are_sent(faber):
    faber.invites(connectionId="office")
    [shown], event = faber.get("/events"), Event.objects.get()
    cursor = shown.pop("cursor")
    assert shown == {
        "eventId": str(event.pk),
        "messageType": "connection_invited",
        "objectType": "connection",
        "objectId": "office",
        "sequence": 1,
        "createdAtUtc": event.created_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "body": {
            "message_type": "connection_invited",
            "object_id": "office",
            "object_type": "connection",
            "event_id": str(event.pk),
            "sequence": 1,
            "created_at": shown["createdAtUtc"],
            "data": {"connection_id": "office", "ConnectionId": "office"},
            "state": "Invited",
        },
    }
    place = (event.transaction_id, str(event.pk), "")
    assert feed.parse_cursor(cursor) == place


def test_a_reader_that_polls_for_ever_sees_each_event_once(faber):
    reader, seen = Reader(faber), []
    for number in range(7):
        faber.invites(connectionId=f"c{number}")
        if number % 3 == 0:
            seen += reader.all()
    assert ids(seen + reader.all()) == [f"c{number}" for number in range(7)]
    assert reader.next() == []


def test_the_cursor_of_any_event_is_the_place_behind_it(faber):
    for name in ("a1", "b1", "c1"):
        faber.invites(connectionId=name)
    first, *rest = faber.get("/events")
    assert ids(faber.get("/events", after=first["cursor"])) == ["b1", "c1"]
    assert faber.get("/events", after=rest[-1]["cursor"]) == []
    reader = Reader(faber, "after=now")
    assert reader.next() == [], "from now on means what comes"
    faber.invites(connectionId="later")
    assert ids(reader.next()) == ["later"]


def test_filters_choose_and_the_cursor_goes_on_all_the_same(faber):
    faber.invites(connectionId="office")
    faber.hosts().meets(faber)
    reader = Reader(faber, "messageType=new_connection")
    assert {event["messageType"] for event in reader.next()} == {"new_connection"}
    assert reader.next() == []
    assert ids(faber.get("/events", objectId="office")) == ["office"]
    start = feed.parse_cursor(re.findall(r"after=([\w-]+)", reader.path)[0])
    newest = Event.objects.latest("transaction_id")
    assert start.transaction_id >= newest.transaction_id


def test_what_is_no_cursor_is_refused(faber):
    for cursor in ("x", "A" * 120, "nOw"):
        response = faber.send("get", f"/events?after={cursor}")
        assert_error(response, 400, "invalid_cursor")
    assert faber.get("/events", after="") == []


def test_a_cursor_older_than_what_is_kept_is_refused(faber, settings):
    faber.invites(connectionId="office")
    [event] = faber.get("/events")
    settings.EVENT_RETENTION_DAYS = 0
    response = faber.send("get", f"/events?after={event['cursor']}")
    assert_error(response, 400, "cursor_expired")
    settings.EVENT_RETENTION_DAYS = 30
    old = Event.objects.get().created_at - timedelta(days=31)
    Event.objects.update(id=smallest_uuid7(int(old.timestamp() * 1000)))
    assert faber.get("/events") == [], (
        "what may be forgotten at any moment is no place to begin"
    )


def test_events_of_others_and_examples_are_not_there(faber, acme):
    webhook = acme.post("/webhooks", {"url": "https://office.example"})
    send_example(acme, webhook)
    faber.invites(connectionId="office")
    [mine] = faber.get("/events")
    assert acme.get("/events") == acme.get("/events", after=mine["cursor"]) == []


def test_an_event_appears_only_when_no_earlier_one_can_appear_any_more(faber):
    """A transaction is held open while a later one commits: neither is skipped."""
    reader, wallet = Reader(faber), faber.made.tenant.wallets.get()

    def quick():
        handshakes.invite(wallet, "quick")
        return reader.next(), reader.next()

    _, seen_meanwhile = during(lambda: handshakes.invite(wallet, "slow"), quick)
    assert seen_meanwhile == ([], [])
    assert ids(reader.all()) == ["slow", "quick"]


def numbers_during(monkeypatch, *names):
    """The number of the running transaction at each call of these functions."""
    found = []

    def watch(name):
        path, _, attribute = name.rpartition(".")
        function = getattr(pkgutil.resolve_name(path), attribute)

        def watched(*given, **named):
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_current_xact_id_if_assigned()::text")
                found.append((name, cursor.fetchone()[0]))
            return function(*given, **named)

        monkeypatch.setattr(name, watched)

    for name in names:
        watch(name)
    return found


@pytest.fixture
def exchange(faber):
    """Alice, connected, and the definition of her credential."""
    alice = faber.hosts()
    alice.known_as(faber)
    return alice, faber.defines("name", "level")


def test_the_feed_waits_for_no_cryptography(faber, exchange, monkeypatch):
    """A transaction gets its number when it locks or writes first.

    Each party's cryptography comes before, once, also that of a hosted peer.
    """
    alice, definition = exchange
    issuing = ["anoncreds.Credential.create", "anoncreds.Credential.process"]
    proving = ["anoncreds.Presentation.create", "anoncreds.Presentation.verify"]
    found = numbers_during(monkeypatch, *issuing, *proving)
    alice.receives(faber, definition, VALUES)
    assert faber.get("/credentials")[0]["state"] == "Issued"
    asked = faber.asks(alice, attributes=[{"policyName": "name"}])
    alice.auto_selects()
    verification = faber.get(f"/verifications/{asked['verificationId']}")
    assert verification["isValid"] is True
    assert found == [(name, None) for name in issuing + proving]


def test_a_manual_issuer_signs_when_it_issues(faber, exchange, monkeypatch):
    alice, definition = exchange
    found = numbers_during(monkeypatch, "anoncreds.Credential.create")
    offered = faber.offers(alice, definition, VALUES)
    alice.accepts_offer()
    assert found == []
    faber.put(f"/credentials/{offered['credentialId']}")
    assert found == [("anoncreds.Credential.create", None)]


def test_what_another_answer_prepared_is_not_used(faber, exchange, monkeypatch):
    """Between preparation and lock the issuer has changed its values."""
    alice, definition = exchange
    faber.offers(alice, definition, VALUES, automaticIssuance=True)
    found = numbers_during(monkeypatch, "anoncreds.Credential.create")
    lock, changed = Credential.lock, []

    def changed_before(credential):
        if not changed:
            row = Credential.objects.get(role="issuer")
            sealed = vault.sealed_value(row, "values", VALUES | {"level": "8"})
            rows = Credential.objects.filter(pk=row.pk)
            changed.append(elsewhere(lambda: rows.update(values=sealed)))
        lock(credential)

    monkeypatch.setattr(Credential, "lock", changed_before)
    alice.accepts_offer()
    assert Credential.objects.get(role="holder").unsealed_values()["level"] == "8"
    assert len(found) == 2 and found[1][1] is not None


def test_the_order_of_an_object_holds_whichever_transaction_began_first(faber):
    """The one that began first moves the object last."""
    handshakes.invite(faber.made.tenant.wallets.get(), "office")
    begun, moved = Signal(), Signal()

    def first_to_begin():
        with transaction.atomic():
            handshakes.invite(faber.made.tenant.wallets.get(), "another")
            begun.set()
            assert moved.wait(20)
            with transaction.atomic():
                told_again("office")

    def first_to_move():
        assert begun.wait(20)
        with transaction.atomic():
            told_again("office")
        moved.set()

    threads([first_to_begin, first_to_move])
    events = faber.get("/events", objectId="office")
    assert [event["sequence"] for event in events] == [1, 2, 3]
    own = list(Event.objects.filter(object_id="office").order_by("sequence"))
    assert own[2].transaction_id == own[1].transaction_id


def told_again(name):
    row = Connection.objects.get(connection_id=name)
    Connection.objects.filter(pk=row.pk).update(sequence=row.sequence + 1)
    row.sequence += 1
    row.emit_event()


def test_events_restored_from_another_server_come_first_and_are_left_behind(faber):
    """Its numbers are higher than ours.

    A reader at that position must still see new events.
    """
    for name in ("a1", "b1"):
        faber.invites(connectionId=name)
    Event.objects.update(transaction_id=2**60)
    reader = Reader(faber, "limit=1")
    assert ids(reader.next()) == ["a1"]
    faber.invites(connectionId="new")
    assert ids(reader.all()) == ["b1", "new"]
    assert settled(faber.tenant)[0] == ["a1", "b1", "new"]


def test_what_commits_while_a_page_is_read_waits_for_the_next(faber, monkeypatch):
    """Between horizon and read: the event is new, not restored, and comes last."""
    faber.invites(connectionId="old")
    horizon, wallet = feed.current_horizon, faber.made.tenant.wallets.get()

    def horizon_and_then_an_event():
        now = horizon()
        elsewhere(lambda: handshakes.invite(wallet, "new"))
        return now

    with monkeypatch.context() as patch:
        patch.setattr(feed, "current_horizon", horizon_and_then_an_event)
        found, position = settled(faber.tenant, count=1)
    assert found == ["old"]
    assert settled(faber.tenant, position, 1)[0] == ["new"]


def test_a_reader_does_not_read_what_lies_behind_it(faber):
    """Each query is served by the index, from the cursor on."""
    rows = feed.events_of(faber.tenant)
    start = feed.Position(7, str(smallest_uuid7(7)))
    with CaptureQueriesContext(connection) as captured:
        feed.read_page(rows, start, 10)
    plan = explained(captured[-1]["sql"])
    assert "events_as_they_settle" in plan and "Sort" not in plan
    [condition] = re.findall(r"Index Cond: (.*)", plan)
    assert "tenant_id" in condition and "ROW(" in condition


def explained(sql):
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL enable_sort = off")
        cursor.execute(f"EXPLAIN {sql}")
        return "\n".join(row[0] for row in cursor.fetchall())
