"""Calls of one object are made in order.

A failed one blocks later ones for five minutes.
"""

import pytest
from uuid_utils.compat import uuid7

from tests.support.webhook_receiver import time_passes, waits, worker_calls
from webhooks.delivery import call, claim
from webhooks.delivery.models import BLOCKED_LOOKAHEAD
from webhooks.events.types import Type
from webhooks.models import Delivery

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def chain(faber, receiver, registers):
    """A connection with three events, none told yet."""
    registers(
        messageTypes=[str(kind) for kind in Type if kind.startswith("connection_")]
    )
    invited = faber.invites(connectionId="office")
    faber.hosts().accepts_invitation(invited["invitation"])
    rows = Delivery.objects.filter(event__object_id="office").order_by("sequence")
    Delivery.objects.exclude(event__object_id="office").delete()
    assert rows.count() == 2
    return rows


def statuses(rows):
    return list(rows.values_list("status", flat=True))


def sequences_of_calls(receiver):
    return [call.body["sequence"] for call in receiver.calls]


def test_calls_of_one_object_arrive_in_order(receiver, chain):
    worker_calls()
    assert sequences_of_calls(receiver) == [1, 2] and statuses(chain) == [
        "done",
        "done",
    ]


def test_the_head_alone_is_claimed(chain):
    [head] = claim.claim_due(10, 10)
    assert head.sequence == 1
    assert claim.claim_due(10, 10) == []
    assert chain[1].due_at < head.due_at, "it is due as soon as the head is done"


def test_many_rows_of_an_object_do_not_hide_the_head_of_a_killed_worker(chain):
    """The lease of the head ends after the others have become due."""
    add_events(chain, 3 * BLOCKED_LOOKAHEAD)
    [head] = claim.claim_due(10, 10)
    time_passes(seconds=61)
    assert chain.exclude(pk=head.pk).filter(due_at__lt=chain[0].due_at).count() > 2 * (
        BLOCKED_LOOKAHEAD
    )
    worker_calls()
    assert set(statuses(chain)) == {"done"}


def add_events(chain, count):
    """More events of the object, due now."""
    last = chain.last()
    for sequence in range(1_000, 1_000 + count):
        event = last.event
        event.pk, event.sequence = uuid7(), sequence
        event.save(force_insert=True)
        Delivery.build(event, last.webhook_id).save(force_insert=True)


def test_a_failing_head_holds_the_next_back(receiver, chain):
    receiver.answers(500)
    worker_calls()
    assert sequences_of_calls(receiver) == [1]
    assert 280 < waits(chain[1]) <= 300
    receiver.answers(200)
    time_passes(seconds=7)
    worker_calls()
    assert sequences_of_calls(receiver) == [1, 1, 2] and statuses(chain) == [
        "done",
        "done",
    ]


def test_sent_again_by_hand_the_head_lets_the_next_go(faber, receiver, chain):
    receiver.answers(500)
    worker_calls()
    assert 280 < waits(chain[1]) <= 300
    receiver.answers(200)
    head = chain[0]
    faber.post(f"/webhooks/{head.webhook_id}/deliveries/{head.pk}/resend")
    worker_calls()
    assert sorted(sequences_of_calls(receiver)) == [1, 1, 2] and statuses(chain) == [
        "done",
        "done",
    ]


def test_after_five_minutes_the_next_goes_without_it(receiver, chain):
    receiver.answers(500)
    worker_calls()
    Delivery.objects.filter(pk=chain[0].pk).update(
        due_at=chain[0].due_at.replace(year=2100)
    )
    time_passes(seconds=290)
    worker_calls()
    assert sequences_of_calls(receiver) == [1]
    receiver.answers(200)
    time_passes(seconds=11)
    worker_calls()
    assert sequences_of_calls(receiver) == [1, 2] and statuses(chain) == [
        "pending",
        "done",
    ]


def test_an_unconfirmed_head_holds_nothing_back(receiver, chain, monkeypatch):
    monkeypatch.setattr(call, "CALL_TIMEOUT_SECONDS", 0.3)
    receiver.silent = True
    worker_calls()
    assert sequences_of_calls(receiver) == [1, 2]
    assert set(chain.values_list("last_error", flat=True)) == {"endpoint_unconfirmed"}


def test_a_head_that_is_given_up_lets_the_next_go(receiver, chain):
    receiver.answers(500)
    worker_calls()
    Delivery.objects.filter(pk=chain[0].pk).update(attempts=len(Delivery.SCHEDULE))
    time_passes(seconds=7)
    worker_calls()
    assert statuses(chain)[0] == "exhausted"
    receiver.answers(200)
    time_passes(seconds=295)
    worker_calls()
    assert sequences_of_calls(receiver)[-1] == 2 and statuses(chain) == [
        "exhausted",
        "done",
    ]


def test_other_objects_do_not_wait(faber, receiver, chain):
    receiver.meet = lambda call: receiver.answers(
        500 if call.body["sequence"] == 1 else 200
    )
    worker_calls()
    [elsewhere] = [other(faber) for _ in range(1)]
    receiver.meet = lambda call: receiver.answers(200)
    worker_calls()
    assert [call.body["object_id"] for call in receiver.calls] == ["office", elsewhere]


def other(faber):
    return faber.invites(connectionId="elsewhere")["connectionId"]


def test_each_webhook_has_an_order_of_its_own(faber, receiver, registers):
    """A receiver that fails holds back nothing for another."""
    types = ["connection_invited", "connection_negotiating"]
    registers(messageTypes=types)
    registers(messageTypes=types, url=receiver.url + "?broken")
    broken = Delivery.objects.filter(webhook__url__endswith="?broken")
    invited = faber.invites()
    faber.hosts().accepts_invitation(invited["invitation"])
    broken.update(due_at=broken[0].due_at.replace(year=2100))
    worker_calls()
    mine = [
        call
        for call in receiver.calls
        if call.body["object_id"] == invited["connectionId"]
    ]
    assert [call.body["sequence"] for call in mine] == [1, 2]
