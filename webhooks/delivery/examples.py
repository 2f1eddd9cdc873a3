"""Example events, for developers to test their receivers."""

from django.db import transaction
from django.db.models.expressions import RawSQL
from uuid_utils.compat import uuid7

from webhooks.delivery.endpoints import Webhook
from webhooks.delivery.models import Delivery
from webhooks.events.emit import build_body, notify_delivery_worker
from webhooks.events.models import TRANSACTION_SQL, Event
from webhooks.events.types import CLIENTS, INTERFACE, Type, object_type_of


@transaction.atomic
def send_example(webhook: Webhook, message_type: str) -> Delivery:
    """Send an example event to this webhook only, even of a type it does not receive.

    The body has `"example": true`, and its object does not exist. Feed and stream leave
    it out. It is called and retried as any delivery, after the commit.
    """
    webhook.require_callable()
    object_key = uuid7()
    event = Event(
        tenant_id=webhook.tenant_id,
        type=Type(message_type),
        object_type=object_type_of(Type(message_type)),
        object_key=object_key,
        object_id=str(object_key),
        sequence=1,
        is_example=True,
    )
    is_of_connection = event.object_type == "connection"
    connection_id = str(object_key if is_of_connection else uuid7())
    data = {"connection_id": connection_id, "ConnectionId": connection_id}
    if message_type in CLIENTS and message_type not in INTERFACE:
        wallet_id = str(uuid7())  # these types exist in hosted wallets only
        data |= {"wallet_id": wallet_id, "WalletId": wallet_id}
    event.body = build_body(event, data, example=True)
    event.transaction_id = RawSQL(TRANSACTION_SQL, [event.object_key])
    event.save(force_insert=True)
    Delivery.build(event, webhook.pk).save(force_insert=True)
    transaction.on_commit(notify_delivery_worker)
    return Delivery.objects.select_related("event").get(event=event, webhook=webhook)
