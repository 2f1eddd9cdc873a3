"""A message to another agent that failed is sent again when a person says so."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agency.core.errors import Conflict
from connections.messaging import outbox
from connections.models import InboundMessage, OutboundMessage
from tests.support import queues


@pytest.fixture
def message(phone, faber):
    """One to a phone, after the last attempt."""
    row = phone.connects(faber)
    faber.post("/messages", {"connectionId": row.connection_id, "text": "Hello"})
    sent = OutboundMessage.objects.get(type="basicmessage/1.0/message")
    sent.lease().exhaust("endpoint_unreachable")
    later = timezone.now() + timedelta(hours=1)
    changes = {"status": "exhausted", "attempts": 10, "due_at": later}
    OutboundMessage.objects.filter(pk=sent.pk).update(**changes)
    return OutboundMessage.objects.get(pk=sent.pk)


def test_a_message_that_was_given_up_is_sent_again(message, phone):
    outbox.resend_message(message)
    queues.sweep()
    assert OutboundMessage.objects.get(pk=message.pk).status == "done"
    assert phone.newest("basicmessage/1.0/message").body["content"] == "Hello"


def test_its_schedule_starts_again(message):
    outbox.resend_message(message)
    row = OutboundMessage.objects.get(pk=message.pk)
    assert (row.status, row.attempts) == ("pending", 0)
    assert row.due_at <= timezone.now()


def test_one_that_is_being_posted_is_left_alone_and_that_is_said(message):
    end = timezone.now() + timedelta(minutes=1)
    rows = OutboundMessage.objects.filter(pk=message.pk)
    rows.update(status="pending", lease_owner=message.pk, lease_until=end)
    with pytest.raises(Conflict) as refused:
        outbox.resend_message(rows.get())
    assert refused.value.code == "message_not_resendable"
    assert (rows.get().attempts, rows.get().lease_until) == (10, end)


@pytest.mark.parametrize(
    "changes", [{"body": None}, {"status": "done"}, {"endpoint": ""}]
)
def test_what_cannot_be_sent_again_is_refused(message, changes):
    rows = OutboundMessage.objects.filter(pk=message.pk)
    rows.update(**changes)
    with pytest.raises(Conflict) as refused:
        outbox.resend_message(rows.get())
    assert refused.value.code == "message_not_resendable"


def test_a_received_message_keeps_its_thread(phone, faber):
    phone.connects(faber)
    ping = phone.build("trust_ping/1.0/ping", thread=None)
    phone.says(ping)
    assert InboundMessage.objects.get(message_id=ping["@id"]).thread_id == ping["@id"]
