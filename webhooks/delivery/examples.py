"""Events of which nothing happened, to try a receiver."""

from django.db import transaction
from uuid_utils.compat import uuid7

from webhooks.delivery.endpoints import Webhook, disabled
from webhooks.delivery.models import Delivery
from webhooks.events.emit import wake
from webhooks.events.models import Event
from webhooks.events.types import CLIENTS, INTERFACE, Type, object_type


@transaction.atomic
def send(webhook: Webhook, kind: str) -> Delivery:
    """Tells this webhook alone of an example, whatever types it wants."""
    if not webhook.is_enabled:
        raise disabled()
    key, kind = uuid7(), Type(kind)
    event = Event(
        tenant_id=webhook.tenant_id, type=kind, object_key=key, object_id=str(key)
    )
    event.object_type, event.sequence, event.is_example = object_type(kind), 1, True
    connection_id = str(key if event.object_type == "connection" else uuid7())
    data = {"connection_id": connection_id, "ConnectionId": connection_id}
    if kind in CLIENTS and kind not in INTERFACE:
        data |= dict.fromkeys(("wallet_id", "WalletId"), str(uuid7()))
    event.write(data, example=True)
    Delivery.create(event, [webhook.pk])
    transaction.on_commit(wake)
    return Delivery.objects.select_related("event").get(event=event, webhook=webhook)
