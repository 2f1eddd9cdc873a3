"""One call: what counts as what, and when it is made again."""

import socket
import time
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from tenants import vault
from tests.support.http_endpoints import answers, hangs, serving
from tests.support.webhook_receiver import time_passes, waits, worker_calls
from webhooks.delivery import call
from webhooks.models import Attempt, Delivery, Webhook

pytestmark = pytest.mark.django_db(transaction=True)
SCHEDULE = [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
Status = Delivery.Status


@pytest.fixture
def sent(faber, registers):
    """Registers, sends an example, and makes its first call. Answers the delivery."""

    def send(**options):
        webhook = registers(**options)
        made = faber.post(
            f"/webhooks/{webhook['id']}/example", {"messageType": "verification"}
        )
        worker_calls()
        return Delivery.objects.get(pk=made["deliveryId"])

    return send


def fresh(row):
    return type(row).objects.get(pk=row.pk)


def again(row):
    """The next call, at its time."""
    time_passes(seconds=waits(fresh(row)) + 1)
    worker_calls()
    return fresh(row)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_any_2xx_is_a_success_and_nothing_else_follows(receiver, sent, status):
    receiver.answers(status)
    row = sent()
    assert (row.status, row.calls, row.last_error) == (Status.DONE, 1, "")
    time_passes(days=10)
    worker_calls()
    assert len(receiver.calls) == 1


@pytest.mark.parametrize("status", [300, 301, 302, 307, 400, 401, 404, 408, 500, 503])
def test_any_other_status_is_a_failure_that_is_repeated(receiver, sent, status):
    receiver.answers(status, Location=receiver.url)
    row = sent()
    assert (row.status, row.attempts, row.last_error) == (
        Status.PENDING,
        1,
        "endpoint_refused",
    )
    assert 3 < waits(row) <= 6
    assert len(receiver.calls) == 1, "a redirect is not followed"


def test_the_schedule_is_kept_to_its_end(receiver, sent):
    receiver.answers(500)
    row = sent()
    for calls, seconds in enumerate(SCHEDULE, 1):
        assert (row.status, row.calls) == (Status.PENDING, calls)
        assert 0.8 * seconds - 2 < waits(row) <= 1.2 * seconds
        row = again(row)
    assert (row.status, row.calls) == (Status.EXHAUSTED, 10)
    assert row.finished_at and len(receiver.calls) == 10
    assert tuple(SCHEDULE) == Delivery.SCHEDULE and sum(
        SCHEDULE
    ) / 3600 == pytest.approx(75.6, 0.1)


def test_the_waits_are_not_all_the_same(receiver, faber, registers):
    receiver.answers(500)
    webhook = registers()
    for _ in range(8):
        faber.post(
            f"/webhooks/{webhook['id']}/example", {"messageType": "verification"}
        )
    worker_calls()
    delays = [waits(row) for row in Delivery.objects.all()]
    assert max(delays) - min(delays) > 0.2


def test_every_call_of_an_event_has_the_same_id_and_bytes_and_its_own_time(
    receiver, sent
):
    receiver.answers(500)
    row = again(sent())
    first, second = receiver.calls
    assert first.data == second.data == row.event.body.encode()
    assert (
        first.headers["webhook-id"]
        == second.headers["webhook-id"]
        == f"msg_{row.event_id}"
    )


@pytest.mark.parametrize(
    "asked, at_least, at_most",
    [
        ("1", 3, 6),
        ("7", 6, 7),
        ("9", 7, 9),
        ("3600", 7, 12),
        ("soon", 3, 6),
        ("-1", 3, 6),
    ],
)
def test_retry_after_is_heeded_up_to_twice_the_wait(
    receiver, sent, asked, at_least, at_most
):
    receiver.answers(503, Retry_After=asked)
    assert at_least < waits(sent()) <= at_most


@pytest.mark.parametrize("status", [429, 502, 504])
def test_an_overloaded_receiver_gets_a_minute_and_one_call_at_a_time(
    receiver, sent, status
):
    receiver.answers(status, Retry_After="90")
    row = sent()
    assert 85 < waits(row) <= 90
    assert Webhook.objects.get().is_slow
    receiver.answers(200)
    again(row)
    assert not Webhook.objects.get().is_slow


def test_gone_disables_the_webhook_at_once(faber, receiver, sent):
    receiver.answers(410)
    row = sent()
    assert (row.status, row.last_error) == (Status.EXHAUSTED, "endpoint_gone")
    [shown] = faber.get("/webhooks")
    assert (shown["enabled"], shown["disabledReason"]) == (False, "gone")
    faber.hosts().meets(faber)
    worker_calls()
    assert len(receiver.calls) == 1


def test_an_address_that_refuses_connections_is_a_failure(faber, sent, receiver):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    row = sent(url=f"http://127.0.0.1:{port}/")
    assert (row.status, row.last_error) == (Status.PENDING, "endpoint_unreachable")
    assert Webhook.objects.get().failing_since


def test_an_address_that_became_private_is_not_called(
    faber, registers, receiver, settings
):
    webhook = registers()
    settings.OUTGOING_ALLOW_LOOPBACK = False
    faber.post(f"/webhooks/{webhook['id']}/example", {"messageType": "verification"})
    worker_calls()
    assert (
        Delivery.objects.get().last_error == "address_refused" and not receiver.calls
    )


def test_an_answer_that_is_no_http_is_a_failure(sent):
    with serving(answers(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")) as place:
        row = sent(url=f"http://{place}/")
    assert (row.status, row.last_error) == (Status.PENDING, "endpoint_bad_answer")


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(call, "CALL_TIMEOUT_SECONDS", 0.3)


def test_a_receiver_that_never_answers_is_called_once(
    faber,
    impatient,
    receiver,
    sent,
):
    """It offers the same credential again with each call that it gets again."""
    receiver.silent = True
    row = sent()
    time_passes(days=10)
    worker_calls()
    assert len(receiver.calls) == 1
    assert fresh(row).status == Status.UNCONFIRMED
    assert Webhook.objects.get().failing_since is None
    [shown] = faber.get(f"/webhooks/{row.webhook_id}/deliveries")
    assert (shown["status"], shown["error"]) == ("Unconfirmed", "endpoint_unconfirmed")


@pytest.mark.parametrize("before", [502, 504, 500, 404])
def test_what_a_tunnel_answers_for_its_receiver_is_no_answer(
    impatient, receiver, sent, before
):
    receiver.answers(before)
    row = sent()
    receiver.silent = True
    assert again(row).status == Status.UNCONFIRMED


def test_no_answer_of_one_that_has_answered_is_repeated_late(
    faber, impatient, receiver, sent
):
    first = sent()
    receiver.silent = True
    faber.post(
        f"/webhooks/{first.webhook_id}/example",
        {"messageType": "verification"},
    )
    worker_calls()
    row = Delivery.objects.exclude(pk=first.pk).get()
    assert (row.status, row.last_error) == (Status.PENDING, "endpoint_unconfirmed")
    assert 290 < waits(row) <= 300
    assert Webhook.objects.get().failing_since is None


def test_one_that_dies_after_it_has_read_the_event_gets_it_again(receiver, sent):
    with serving(answers(b"")) as place:
        row = sent(url=f"http://{place}/")
    assert (row.status, row.last_error) == (Status.PENDING, "endpoint_unconfirmed")
    Webhook.objects.update(url=receiver.url)
    assert again(row).status == Status.DONE
    assert receiver.calls[0].headers["webhook-id"] == f"msg_{row.event_id}"


def test_no_answer_is_not_repeated_where_the_webhook_says_so(impatient, sent):
    with serving(hangs, answers(b"")) as place:
        assert (
            sent(url=f"http://{place}/", retryUnconfirmed=False).status
            == Status.UNCONFIRMED
        )
        Webhook.objects.update(has_answered=True)
        assert (
            sent(url=f"http://{place}/", retryUnconfirmed=False).status
            == Status.UNCONFIRMED
        )


@pytest.mark.slow
def test_a_receiver_that_never_answers_and_asks_for_it_is_called_to_the_end(
    impatient, sent
):
    """It is never disabled."""
    with serving(*[hangs] * 10) as place:
        row = sent(url=f"http://{place}/", retryUnconfirmed=True)
        for _ in SCHEDULE:
            Webhook.objects.update(failing_since=timezone.now() - timedelta(days=9))
            row = again(row)
    assert (row.status, row.calls) == (Status.UNCONFIRMED, 10)
    assert Webhook.objects.get().is_enabled


def test_each_call_is_logged_and_what_was_answered_is_sealed(faber, receiver, sent):
    receiver.answers(500, b"Zenobia is not known here " + b"x" * 9000)
    again(row := sent())
    first, second = Attempt.objects.order_by("number")
    assert (first.number, first.status_code, first.error) == (
        1,
        500,
        "endpoint_refused",
    )
    assert second.number == 2 and second.started_at >= first.started_at
    assert b"Zenobia" not in bytes(first.answer)
    assert len(vault.unseal(first, "answer")) == call.MAX_ANSWER_BYTES
    shown = faber.get(f"/webhooks/{row.webhook_id}/deliveries/{row.pk}")
    assert [one["number"] for one in shown["attempts"]] == [2, 1]
    assert shown["attempts"][0]["answer"].startswith("Zenobia is not known here")
    assert shown["attempts"][0]["durationMs"] < 5000


def test_a_bug_of_ours_is_logged_and_the_call_made_later(monkeypatch, caplog, sent):
    def broken(*arguments):
        raise RuntimeError("broken")

    with monkeypatch.context() as patched:
        patched.setattr("webhooks.delivery.call.signature_headers", broken)
        row = sent()
    assert (row.status, row.last_error) == (Status.PENDING, "internal_error")
    assert "was not made" in caplog.text
    assert again(row).status == Status.DONE


def test_no_database_connection_is_held_during_the_call(faber, receiver, registers):
    held = []
    receiver.meet = lambda call: held.append(least_in_use())
    path = f"/webhooks/{registers()['id']}/example"
    faber.post(path, {"messageType": "verification"})
    vault.forget_keys()
    worker_calls()
    assert held == [0]


def least_in_use():
    """Over half a second, as the pool takes connections back in its own thread."""
    end, least = time.monotonic() + 0.5, 100
    while time.monotonic() < end and least:
        stats = connection.pool.get_stats()
        least = min(least, stats["pool_size"] - stats["pool_available"])
    return least


def test_a_call_names_the_request_that_caused_its_event(faber, receiver, registers):
    registers(messageTypes=["connection_invited"])
    faber.call("post", "/connections", {}, **{"X-Request-Id": "order-4711"})
    worker_calls()
    assert receiver.calls[0].headers["x-request-id"].startswith("order-4711.")


def test_an_event_that_no_request_caused_names_none(receiver, sent):
    sent()
    assert "x-request-id" not in receiver.calls[0].headers
