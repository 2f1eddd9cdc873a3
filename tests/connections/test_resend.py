"""A message to another agent that failed is sent again when a person says so."""

from datetime import timedelta

import pytest
from django.utils import timezone

from connections.messaging import outbox
from connections.models import InboundMessage, OutboundMessage
from core.errors import Conflict
from tests.support import queues


@pytest.fixture
def message(row, faber):
    """One to a phone, after the last attempt."""
    faber.post("/messages", {"connectionId": row.connection_id, "text": "Hello"})
    sent = OutboundMessage.objects.get(type="basicmessage/1.0/message")
    sent.lease().exhaust("endpoint_unreachable")
    later = timezone.now() + timedelta(hours=1)
    changes = {"status": "exhausted", "attempts": 10, "due_at": later}
    OutboundMessage.objects.filter(pk=sent.pk).update(**changes)
    return OutboundMessage.objects.get(pk=sent.pk)


def test_a_message_that_was_given_up_is_sent_again_by_a_new_schedule(message, phone):
    outbox.resend_message(message)
    sent = OutboundMessage.objects.get(pk=message.pk)
    assert (sent.status, sent.attempts) == ("pending", 0)
    assert sent.due_at <= timezone.now()
    queues.sweep()
    assert OutboundMessage.objects.get(pk=message.pk).status == "done"
    assert phone.newest("basicmessage/1.0/message").body["content"] == "Hello"


@pytest.mark.parametrize("is_leased", [True, False])
def test_what_cannot_be_sent_again_is_refused_and_left_alone(message, is_leased):
    rows = OutboundMessage.objects.filter(pk=message.pk)
    end = timezone.now() + timedelta(minutes=1)
    lease = {"status": "pending", "lease_owner": message.pk, "lease_until": end}
    others = [{"body": None}, {"status": "done"}, {"endpoint": ""}]
    for changes in [lease] if is_leased else others:
        rows.update(**changes)
        before = rows.values().get()
        with pytest.raises(Conflict) as refused:
            outbox.resend_message(rows.get())
        assert refused.value.code == "message_not_resendable"
        assert rows.values().get() == before
        rows.update(**{name: getattr(message, name) for name in changes})


def test_a_received_message_keeps_its_thread(row, phone):
    ping = phone.says(phone.build("trust_ping/1.0/ping", thread=None))
    assert InboundMessage.objects.get(message_id=ping["@id"]).thread_id == ping["@id"]
