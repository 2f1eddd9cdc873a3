"""GET /events/stream of the process that serves it: live server-sent events."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from django.db import transaction
from prometheus_client import CollectorRegistry
from prometheus_client.multiprocess import MultiProcessCollector

from agency.server import stream as streaming
from connections.protocols import handshakes
from tenants.models import ApiKey, Tenant
from tests.support.errors import assert_error
from tests.support.event_streams import (
    Stream,
    database_connections,
    serving,
)
from tests.support.processes import eventually, free_port
from tests.support.races import during, threads
from webhooks.events import epochs, feed
from webhooks.events.stream import Broadcaster, Listener

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


@pytest.fixture
def server(transactional_db):
    with serving(
        "stream", free_port(), STREAM_LISTENERS="40", STREAM_LISTENERS_PER_TENANT="30"
    ) as url:
        yield url


def test_events_come_as_they_happen_with_the_body_that_webhooks_are_sent(faber, server):
    stream = Stream(faber, server)
    assert stream.answer.headers["Content-Type"] == "text/event-stream"
    assert stream.until_place() == []
    faber.invites(connectionId="office")
    sent = stream.soon()
    [event] = faber.get("/events")
    assert sent.body == event["body"]
    assert faber.get("/events", after=sent.id) == []


def test_a_listener_that_comes_again_misses_nothing_and_sees_nothing_twice(
    faber, server
):
    stream = Stream(faber, server)
    stream.until_place()
    faber.invites(connectionId="a1")
    assert stream.take(1) == ["a1"]
    stream.close()
    for name in ("b1", "c1"):
        faber.invites(connectionId=name)
    again = Stream(faber, server, last=stream.last)
    assert again.take(2) == ["b1", "c1"]
    faber.invites(connectionId="d1")
    assert again.take(1) == ["d1"]


def test_a_place_without_events_is_one_to_come_again_to(faber, server):
    faber.invites(connectionId="before")
    stream = Stream(faber, server)
    assert stream.until_place() == [] and stream.last
    stream.close()
    faber.invites(connectionId="meanwhile")
    assert Stream(faber, server, last=stream.last).take(1) == ["meanwhile"]


def test_it_begins_where_asked_and_sends_what_is_wanted(faber, acme, server):
    faber.invites(connectionId="a1"), faber.invites(connectionId="b1")
    acme.invites(connectionId="theirs")
    assert Stream(faber, server, "after=start").take(2) == ["a1", "b1"]
    assert Stream(acme, server, "after=start").take(1) == ["theirs"]
    one = Stream(faber, server, "after=start&objectId=b1")
    assert [sent.body["object_id"] for sent in one.until_place()] == ["b1"]
    faber.invites(connectionId="c1")
    faber.delete("/connections/b1")
    kinds = Stream(faber, server, "after=start&messageType=verification")
    assert kinds.until_place() == []


def test_many_events_are_caught_up_with_in_order_while_more_come(faber, server):
    wallet = faber.made.tenant.wallets.get()
    names = [f"c{number:04}" for number in range(1300)]
    with transaction.atomic():
        for name in names[:1200]:
            handshakes.invite(wallet, name)
    stream = Stream(faber, server, "after=start")
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(
            threads,
            [lambda: [handshakes.invite(wallet, name) for name in names[1200:]]],
        )
        assert stream.take(1300) == names
        coming.result()


def test_an_open_transaction_holds_later_events_back_and_none_is_lost(faber, server):
    stream, wallet = Stream(faber, server), faber.made.tenant.wallets.get()
    stream.until_place()

    def quick():
        handshakes.invite(wallet, "quick")
        # It is admitted between two polls, and so there was one after the commit.
        assert Stream(faber, server, "after=start").until_place() == []

    during(lambda: handshakes.invite(wallet, "slow"), quick)
    assert stream.take(2) == ["slow", "quick"]


@pytest.mark.parametrize("kind", ["access_token", "subscription_key"])
def test_a_revoked_key_ends_the_stream(faber, server, kind):
    """Though nothing happens, and before anything that happens later is sent."""
    stream = Stream(faber, server)
    stream.until_place()
    faber.tenant.keys.get(kind=kind).revoke()
    if kind == "access_token":
        handshakes.invite(faber.made.tenant.wallets.get(), "later")
    last = stream.soon()
    assert (last.event, last.body["code"]) == ("end", "unauthorized")
    with pytest.raises(StopIteration):
        stream.next()
    assert Stream(faber, server).answer.status_code == 401


def test_a_stream_needs_the_scope_of_readers(faber, server):
    answers = []
    for scopes in (["issue", "values"], ["read"]):
        few = ApiKey.issue("access_token", faber.tenant, "Few", scopes=scopes)[1]
        headers = faber.headers | {"Authorization": f"bearer {few}"}
        answers.append(
            requests.get(
                f"{server}/events/stream", headers=headers, stream=True, timeout=9
            )
        )
    assert_stream_error(answers[0], 403, "missing_scope")
    assert answers[1].status_code == 200


def test_a_catch_up_sends_nothing_after_the_key_was_revoked(faber):
    key = faber.tenant.keys.get(kind="access_token")
    handshakes.invite(faber.made.tenant.wallets.get(), "earlier")
    key.revoke()

    async def catch_up():
        listener = Listener(faber.tenant, [key.pk], feed.FIRST_POSITION, {})
        listener.admitted.set()
        return [text async for text in Broadcaster().stream_to(listener)]

    [text] = asyncio.run(catch_up())
    assert text.startswith(b"event: end")


def assert_stream_error(response, status, code):
    assert_error(response, status, code)
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["X-Request-Id"]


@pytest.mark.parametrize(
    "query, code",
    [
        ("after=x", "invalid_cursor"),
        ("messageType=x", "invalid_request"),
        ("objectId=" + "x" * 200, "invalid_request"),
        ("&".join(["a=1"] * 2501), "invalid_request"),
    ],
)
def test_a_wrong_wish_is_refused_as_by_the_list(faber, server, query, code):
    assert_stream_error(Stream(faber, server, query).answer, 400, code)
    assert_stream_error(faber.send("get", f"/events?{query}"), 400, code)


def test_a_stream_that_breaks_by_a_bug_leaves_a_line_in_the_log(caplog):
    class Broken(Broadcaster):
        async def run_in_thread(self, *arguments):
            return Listener(Tenant(), [], feed.FIRST_POSITION, {})

        async def stream_to(self, listener):
            raise KeyError("bug")
            yield

    async def send(message):
        pass

    async def receive():
        await asyncio.Event().wait()  # it never hangs up

    application = streaming.Application()
    application.broadcaster = Broken()
    scope = {"type": "http", "method": "GET", "path": "/"}
    asyncio.run(application.serve_stream(scope, receive, send))
    assert "a stream broke" in caplog.text
    assert application.broadcaster.all_listeners() == []


def test_who_is_nobody_is_refused_and_nothing_else_is_served(faber, server):
    nobody = requests.get(f"{server}/events/stream", timeout=9)
    assert_stream_error(nobody, 401, "unauthorized")
    token = {"Authorization": faber.headers["Authorization"]}
    later = requests.get(
        f"{server}/credentials/v1/events/stream", headers=token, stream=True, timeout=9
    )
    assert later.status_code == 200
    posted = requests.post(f"{server}/events/stream", timeout=9)
    assert_stream_error(posted, 405, "method_not_allowed")
    elsewhere = requests.get(f"{server}/events", timeout=9)
    assert_stream_error(elsewhere, 404, "not_found")
    assert requests.get(f"{server}/health", timeout=9).text == "Healthy"


def test_listeners_are_capped_for_each_organization_and_for_the_process(
    faber, acme, server
):
    mine = [Stream(faber, server) for _ in range(30)]
    refused = Stream(faber, server).answer
    assert_stream_error(refused, 429, "too_many_listeners")
    theirs = [Stream(acme, server) for _ in range(10)]
    assert {one.answer.status_code for one in mine + theirs} == {200}
    assert_stream_error(Stream(acme, server).answer, 503, "stream_full")
    mine[0].close()
    eventually(lambda: Stream(acme, server).answer.status_code == 200)


def test_open_streams_are_counted_with_what_all_processes_count(faber, tmp_path):
    shared = {"METRICS_TOKEN": "x", "METRICS_ROOT": str(tmp_path)}
    with serving("stream", free_port(), **shared) as url:
        streams = [Stream(faber, url) for _ in range(3)]
        eventually(lambda: listeners(tmp_path) == 3)
        streams[0].close()
        eventually(lambda: listeners(tmp_path) == 2)


def listeners(folder):
    found = CollectorRegistry()
    MultiProcessCollector(found, str(folder))
    return found.get_sample_value("agency_stream_listeners")


def test_listeners_hold_no_database_connections(faber, server):
    before = database_connections()
    streams = [Stream(faber, server, "after=start") for _ in range(30)]
    for stream in streams:
        stream.until_place()
    faber.invites(connectionId="office")
    assert [stream.take(1) for stream in streams] == [["office"]] * 30
    assert database_connections() - before <= 4


def test_the_web_server_says_where_the_stream_is(faber, settings):
    settings.STREAM_URL = "http://127.0.0.1:8001"
    response = faber.send("get", "/agency/v1/events/stream")
    assert (response.status_code, response.json()["code"]) == (421, "stream_elsewhere")
    place = "http://127.0.0.1:8001/agency/v1/events/stream"
    assert place in response.json()["message"]
    assert response.headers["Link"].startswith(f"<{place}>;")
    settings.STREAM_URL = settings.PUBLIC_URL
    assert "proxy" in faber.send("get", "/events/stream").json()["message"]


def test_without_a_key_the_web_server_says_nothing(acme, client):
    assert client.get("/events/stream").status_code == 401
    assert acme.send("get", "/events/stream").status_code == 421


def test_a_restore_ends_streams_and_refuses_their_cursors(faber, server):
    stream = Stream(faber, server)
    stream.until_place()
    epochs.begin_epoch()
    with pytest.raises(StopIteration):
        while True:
            stream.next()
    again = Stream(faber, server, last=stream.last)
    assert_stream_error(again.answer, 400, "database_restored")
    started = Stream(faber, server)
    started.until_place()
    faber.invites(connectionId="a1")
    assert started.take(1) == ["a1"]
