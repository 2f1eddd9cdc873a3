"""One call: what counts as what, and when it is made again."""

import socket
from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from core.net import http
from tenants import vault
from tests.support.http_endpoints import answers, serving
from tests.support.races import wait_until
from tests.support.webhook_receiver import (
    call_example,
    send_example,
    time_passes,
    waits,
    worker_calls,
)
from webhooks.delivery import call
from webhooks.delivery.outcomes import Result, outcome_of_response
from webhooks.models import Attempt, Delivery, Webhook

pytestmark = pytest.mark.django_db(transaction=True)
SCHEDULE = [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
Status = Delivery.Status


@pytest.fixture
def sent(faber, registers):
    """Registers, sends an example, and makes its first call. Returns the delivery."""
    return lambda **options: call_example(faber, registers(**options))


def fresh(row):
    return type(row).objects.get(pk=row.pk)


def again(row):
    """The next call, at its time."""
    time_passes(seconds=waits(fresh(row)) + 1)
    worker_calls()
    return fresh(row)


@pytest.mark.parametrize("statuses, result", [
    ([200, 201, 204, 299], Result.DELIVERED),
    ([300, 301, 302, 307, 400, 401, 404, 408, 500, 503], Result.FAILED),
    ([429, 502, 504], Result.THROTTLED), ([410], Result.GONE),
])  # fmt: skip
def test_any_2xx_is_a_success_and_nothing_else(statuses, result):
    answers = [http.Response(status, {}, b"", True, 0.1) for status in statuses]
    assert {outcome_of_response(one, None).result for one in answers} == {result}


def test_after_a_success_no_call_follows_and_a_redirect_is_repeated(receiver, sent):
    receiver.answers(204)
    row = sent()
    assert (row.status, row.calls, row.last_error) == (Status.DONE, 1, "")
    time_passes(days=10)
    worker_calls()
    assert len(receiver.calls) == 1
    receiver.answers(302, Location=receiver.url)
    row = sent()
    failed = (Status.PENDING, 1, "endpoint_refused")
    assert (row.status, row.attempts, row.last_error) == failed
    assert 3 < waits(row) <= 6
    assert len(receiver.calls) == 2, "a redirect is not followed"


def test_the_schedule_is_kept_to_its_end(receiver, sent):
    receiver.answers(500)
    row = sent()
    for calls, seconds in enumerate(SCHEDULE, 1):
        assert (row.status, row.calls) == (Status.PENDING, calls)
        assert 0.8 * seconds - 2 < waits(row) <= 1.2 * seconds
        row = again(row)
    assert (row.status, row.calls) == (Status.EXHAUSTED, 10)
    assert row.finished_at and len(receiver.calls) == 10
    assert tuple(SCHEDULE) == Delivery.SCHEDULE
    assert sum(SCHEDULE) / 3600 == pytest.approx(75.6, 0.1)
    first, *others = receiver.calls
    assert {one.data for one in others} == {first.data} == {row.event.body.encode()}
    ids = {one.headers["webhook-id"] for one in receiver.calls}
    assert ids == {f"msg_{row.event_id}"}


def test_the_waits_are_not_all_the_same(receiver, faber, registers):
    receiver.answers(500)
    webhook = registers()
    for _ in range(8):
        send_example(faber, webhook)
    worker_calls()
    delays = [waits(row) for row in Delivery.objects.all()]
    assert max(delays) - min(delays) > 0.2


def test_retry_after_counts_up_to_twice_the_wait(receiver, faber, registers, subtests):
    webhook = registers()
    for asked, at_least, at_most in (
        ("1", 3, 6), ("7", 6, 7), ("9", 7, 9), ("3600", 7, 12), ("soon", 3, 6), ("-1", 3, 6),
    ):  # fmt: skip
        receiver.answers(503, Retry_After=asked)
        with subtests.test(asked):
            assert at_least < waits(call_example(faber, webhook)) <= at_most


def test_an_overloaded_receiver_gets_a_minute_and_one_call_at_a_time(receiver, sent):
    receiver.answers(429, Retry_After="90")
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


def test_an_address_that_refuses_connections_or_answers_no_http_is_a_failure(sent):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    row = sent(url=f"http://127.0.0.1:{port}/")
    assert (row.status, row.last_error) == (Status.PENDING, "endpoint_unreachable")
    assert Webhook.objects.get().failing_since
    with serving(answers(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")) as place:
        row = sent(url=f"http://{place}/")
    assert (row.status, row.last_error) == (Status.PENDING, "endpoint_bad_answer")


def test_an_address_now_private_is_not_called(faber, registers, receiver, settings):
    webhook = registers()
    settings.OUTGOING_ALLOW_LOOPBACK = False
    assert call_example(faber, webhook).last_error == "address_refused"
    assert not receiver.calls


def test_a_receiver_that_is_silent_is_called_once(faber, impatient, receiver, sent):
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


def test_a_tunnel_gives_no_answer(faber, impatient, receiver, registers, subtests):
    webhook = registers()
    for status in (502, 504, 500, 404):
        receiver.silent = False
        receiver.answers(status)
        row = call_example(faber, webhook)
        receiver.silent = True
        with subtests.test(status=status):
            assert again(row).status == Status.UNCONFIRMED


def test_a_new_silence_is_repeated_late(faber, impatient, receiver, registers):
    webhook = registers()
    call_example(faber, webhook)
    receiver.silent = True
    row = call_example(faber, webhook)
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


@pytest.mark.parametrize("has_answered", [False, True])
def test_no_answer_is_not_repeated_where_the_webhook_says_so(
    faber, impatient, receiver, registers, has_answered
):
    webhook = registers(retryUnconfirmed=False)
    Webhook.objects.update(has_answered=has_answered)
    receiver.silent = True
    assert call_example(faber, webhook).status == Status.UNCONFIRMED


def test_a_silent_receiver_that_asks_is_called_to_the_end(impatient, receiver, sent):
    """It is never disabled."""
    receiver.silent = True
    row = sent(retryUnconfirmed=True)
    for _ in SCHEDULE:
        Webhook.objects.update(failing_since=timezone.now() - timedelta(days=9))
        row = again(row)
    assert (row.status, row.calls) == (Status.UNCONFIRMED, 10)
    assert Webhook.objects.get().is_enabled


def test_each_call_is_logged_and_what_was_answered_is_sealed(faber, receiver, sent):
    receiver.answers(500, b"Zenobia is not known here " + b"x" * 9000)
    again(row := sent())
    first, second = Attempt.objects.order_by("number")
    assert (first.number, first.status_code) == (1, 500)
    assert first.error == "endpoint_refused"
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
    """The pool takes connections back in its own thread."""
    held = []

    def meet(call):
        wait_until(lambda: in_use() == 0)
        held.append(in_use())

    receiver.meet = meet
    row = send_example(faber, registers())
    vault.forget_keys()
    worker_calls()
    assert held == [0] and fresh(row).status == Status.DONE


def in_use():
    stats = connection.pool.get_stats()
    return stats["pool_size"] - stats["pool_available"]


def test_a_call_names_the_request_that_caused_its_event(faber, receiver, registers):
    webhook = registers(messageTypes=["connection_invited"])
    faber.call("post", "/connections", {}, **{"X-Request-Id": "order-4711"})
    worker_calls()
    assert receiver.calls[0].headers["x-request-id"].startswith("order-4711.")
    call_example(faber, webhook)
    assert "x-request-id" not in receiver.calls[1].headers, "an example has none"
