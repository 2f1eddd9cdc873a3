"""Calls of one object are made in order.

A failed one blocks later ones for five minutes.
"""

import pytest
from uuid_utils.compat import uuid7

from tests.support.webhook_receiver import time_passes, worker_calls
from webhooks.delivery import claim, due
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


def test_the_head_alone_is_claimed(chain, settings):
    settings.WEBHOOK_THREADS = 16  # several calls of the webhook at a time
    [head] = claim.claim_due(10, 10)
    assert head.sequence == 1
    assert claim.claim_due(10, 10) == []
    assert chain[1].due_at < head.due_at, "it is due as soon as the head is done"


def test_many_rows_of_an_object_do_not_hide_the_head_of_a_killed_worker(
    chain, monkeypatch
):
    """The lease of the head ends after the others have become due."""
    monkeypatch.setattr(due, "LOOKAHEAD", 8)
    add_events(chain, 3 * 8)
    [head] = claim.claim_due(10, 10)
    time_passes(seconds=61)
    due_before = chain.exclude(pk=head.pk).filter(due_at__lt=chain[0].due_at)
    assert due_before.count() > 2 * 8
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


def test_many_rows_behind_a_failed_head_hide_no_other_object(
    receiver, chain, examples, monkeypatch
):
    monkeypatch.setattr(due, "LOOKAHEAD", 2)
    receiver.answers(500)
    worker_calls()
    add_events(chain, 20)
    [other] = examples({"id": chain[0].webhook_id})
    [found] = claim.claim_due(10, 10)
    assert found.pk == other.pk
    behind = chain.exclude(pk=chain[0].pk)
    assert set(behind.values_list("due_at", flat=True)) == {chain[0].due_at}


def test_behind_one_that_version_0_1_0_postponed_the_order_is_kept(receiver, chain):
    """It makes a delivery due when the failed one blocks no more, and not before."""
    receiver.answers(500)
    worker_calls()
    head, behind = chain
    chain.filter(pk=behind.pk).update(due_at=head.blocks_until)
    add_events(chain, 1)
    receiver.answers(200)
    time_passes(seconds=7)
    worker_calls()
    time_passes(seconds=294)
    assert sequences_of_calls(receiver) == [1, 1]
    worker_calls()
    ids = [call.headers["webhook-id"] for call in receiver.calls]
    assert ids[1:] == [row.event.message_id for row in chain.all()]


@pytest.mark.parametrize("by_hand", [False, True])
def test_a_failing_head_holds_back_until_called_again(faber, receiver, chain, by_hand):
    receiver.answers(500)
    worker_calls()
    assert sequences_of_calls(receiver) == [1]
    assert claim.claim_due(10, 10) == []
    assert chain[1].due_at == chain[0].due_at, "it waits for the next call"
    receiver.answers(200)
    head = chain[0]
    if by_hand:
        faber.post(f"/webhooks/{head.webhook_id}/deliveries/{head.pk}/resend")
    else:
        time_passes(seconds=7)
    worker_calls()
    assert sorted(sequences_of_calls(receiver)) == [1, 1, 2]
    assert statuses(chain) == ["done", "done"]


def test_after_five_minutes_the_next_goes_without_it(receiver, chain):
    receiver.answers(500)
    worker_calls()
    never = chain[0].due_at.replace(year=2100)
    Delivery.objects.filter(pk=chain[0].pk).update(due_at=never)
    time_passes(seconds=290)
    worker_calls()
    assert sequences_of_calls(receiver) == [1]
    receiver.answers(200)
    time_passes(seconds=11)
    worker_calls()
    assert sequences_of_calls(receiver) == [1, 2]
    assert statuses(chain) == ["pending", "done"]


def test_an_unconfirmed_head_holds_nothing_back(receiver, chain, impatient):
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
    assert sequences_of_calls(receiver)[-1] == 2
    assert statuses(chain) == ["exhausted", "done"]


def test_other_objects_do_not_wait(faber, receiver, chain):
    receiver.answers(500)
    worker_calls()
    receiver.answers(200)
    faber.invites(connectionId="elsewhere")
    worker_calls()
    called = [call.body["object_id"] for call in receiver.calls]
    assert called == ["office", "elsewhere"]


def test_each_webhook_has_an_order_of_its_own(faber, receiver, registers):
    """A receiver that fails holds back nothing for another."""
    types = ["connection_invited", "connection_negotiating"]
    registers(messageTypes=types)
    registers(messageTypes=types, url=receiver.url + "?broken")
    broken = Delivery.objects.filter(webhook__url__endswith="?broken")
    invited = faber.invites(connectionId="office")
    faber.hosts().accepts_invitation(invited["invitation"])
    broken.update(due_at=broken[0].due_at.replace(year=2100))
    worker_calls()
    bodies = [call.body for call in receiver.calls]
    mine = [one["sequence"] for one in bodies if one["object_id"] == "office"]
    assert mine == [1, 2]
