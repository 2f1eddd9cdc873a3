"""Rows as a queue: due, claim, lease, fence, retry, exhaust."""

from datetime import timedelta

import pytest
from django.utils import timezone
from uuid_utils.compat import uuid7

from connections.models import InboundMessage
from core.errors import Unavailable
from core.telemetry.logs import current_request_id
from core.work.leases import LEASE, LostLease, QueuedJob, work_on
from credentials.models import Publication
from tests.factories import InboundMessageFactory
from tests.support.races import at_once

Status = QueuedJob.Status


@pytest.fixture
def rows(faber):
    return InboundMessageFactory.create_batch(5, tenant=faber.tenant)


def later(row, **fields):
    InboundMessage.objects.filter(pk=row.pk).update(**fields)


def fresh(row):
    return InboundMessage.objects.get(pk=row.pk)


def past(seconds=1):
    return timezone.now() - timedelta(seconds=seconds)


def test_due_rows_are_claimed_oldest_first_up_to_the_limit(rows):
    claimed = InboundMessage.claim(limit=3)
    assert [row.pk for row in claimed] == [row.pk for row in rows[:3]]
    owners = {fresh(row).lease_owner for row in claimed}
    assert None not in owners and owners == {row.lease_owner for row in claimed}
    end = fresh(claimed[0]).lease_until - timezone.now()
    assert LEASE - timedelta(seconds=5) < end <= LEASE


def test_a_claimed_row_is_claimed_again_when_its_lease_has_run_out(rows):
    [first] = InboundMessage.claim(limit=1)
    later(first, lease_until=past())
    [again] = InboundMessage.claim(limit=1)
    assert again.pk == first.pk and again.lease_owner != first.lease_owner


def test_what_is_done_or_not_due_or_leased_is_not_claimed(rows):
    kept_back = (
        {"status": Status.DONE},
        {"status": Status.EXHAUSTED},
        {"due_at": past(-60)},
        {"lease_until": past(-60), "lease_owner": uuid7()},
    )
    for row, fields in zip(rows[1:], kept_back, strict=True):
        later(row, **fields)
    assert [row.pk for row in InboundMessage.claim()] == [rows[0].pk]


def test_many_claimers_at_once_never_get_the_same_row(faber):
    made = InboundMessageFactory.create_batch(40, tenant=faber.tenant)
    claimed = at_once(*[lambda: InboundMessage.claim(limit=10)] * 8)
    got = [row.pk for batch in claimed for row in batch]
    assert len(got) == len(set(got)) and set(got) <= {row.pk for row in made}
    assert len(got) >= 10


@pytest.mark.parametrize(
    ("write", "words"),
    [("finish", []), ("retry", ["error"]), ("release", []), ("exhaust", ["error"])],
)
def test_a_successors_row_is_out_of_reach_of_the_one_before(rows, write, words):
    [slow] = InboundMessage.claim(limit=1)
    later(slow, lease_until=past())
    [successor] = InboundMessage.claim(limit=1)
    before = InboundMessage.objects.filter(pk=slow.pk).values().get()
    assert getattr(slow, write)(*words) is False
    assert InboundMessage.objects.filter(pk=slow.pk).values().get() == before
    assert getattr(successor, write)(*words) is True


def test_a_finished_row_stays_finished(rows):
    [row] = InboundMessage.claim(limit=1)
    assert row.finish() is True
    assert (row.finish(), row.retry("error"), row.release()) == (False, False, False)
    assert fresh(row).status == Status.DONE


def test_finishing_writes_what_it_is_given_only_for_the_owner(rows):
    [row] = InboundMessage.claim(limit=1)
    later(row, body=b"x")
    stale = fresh(row)
    stale.lease_owner = uuid7()
    assert stale.finish(body=None) is False and fresh(row).body is not None
    assert row.finish(body=None) is True and fresh(row).body is None


def test_a_retry_waits_as_long_as_the_schedule_says(rows):
    [row] = InboundMessage.claim(limit=1)
    for attempt, seconds in enumerate(QueuedJob.SCHEDULE):
        row.retry("E" * 300)
        row = fresh(row)
        waits = (row.due_at - timezone.now()).total_seconds()
        assert 0.8 * seconds - 5 < waits < 1.2 * seconds + 5
        assert (row.attempts, row.lease_owner) == (attempt + 1, None)
        assert row.last_error == "E" * 200
    assert InboundMessage.claim(limit=9) and fresh(row).lease_owner is None


def test_a_row_is_exhausted_when_its_schedule_is_used_up(rows):
    later(rows[0], attempts=len(QueuedJob.SCHEDULE))
    [row] = InboundMessage.claim(limit=1)
    row.retry("still broken", body=None)
    row = fresh(row)
    assert (row.status, row.last_error) == (Status.EXHAUSTED, "still broken")
    later(row, due_at=past(), lease_until=None)
    assert row.pk not in {one.pk for one in InboundMessage.claim()}


def test_a_released_row_is_due_at_once_and_has_lost_no_attempt(rows):
    [row] = InboundMessage.claim(limit=1)
    row.release()
    [again] = InboundMessage.claim(limit=1)
    assert (again.pk, again.attempts) == (row.pk, 0)


def given(error):
    def work(row):
        raise error

    return work


def test_a_failed_attempt_puts_the_row_back_and_only_a_bug_is_logged(rows, caplog):
    [row] = InboundMessage.claim(limit=1)
    assert not work_on(row, given(Unavailable("ledger_unavailable", "Later.")))
    assert (fresh(row).last_error, fresh(row).attempts) == ("ledger_unavailable", 1)
    assert not caplog.records
    [other] = InboundMessage.claim(limit=1)
    assert not work_on(other, given(ValueError("broken")))
    assert (fresh(other).last_error, fresh(other).lease_owner) == (
        "internal_error",
        None,
    )
    assert f"inbound message {other.pk} failed" in caplog.text


def test_who_lost_the_lease_changes_nothing(rows):
    [slow] = InboundMessage.claim(limit=1)
    before = InboundMessage.objects.filter(pk=slow.pk).values().get()
    assert not work_on(slow, given(LostLease()))
    slow.lease_until = past()
    assert not work_on(slow, lambda row: row.finish()), "it is not even begun"
    assert InboundMessage.objects.filter(pk=slow.pk).values().get() == before


def test_an_attempt_has_the_request_that_caused_its_job(faber):
    fields = {"kind": Publication.Kind.DID, "request_id": "order-1"}
    job = Publication(tenant=faber.tenant, **fields).lease()
    found = []
    assert work_on(job, lambda _: found.append(current_request_id()))
    assert found == ["order-1"]
