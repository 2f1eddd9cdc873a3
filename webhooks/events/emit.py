"""Emit events: a row that changes writes its event in the same transaction."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from django.db import models, transaction

from core import faults
from core.call import this_call
from core.database import clock
from core.database.base import count_rows, require_known_server
from core.database.columns import Columns
from core.database.compiled_sql import insert_row
from core.hooks import Hook
from core.text.bounded_json import JSON
from core.work import transactions
from core.work.notify import notify_worker
from tenants.models import NotedRow, Record
from wallets.models import Wallet
from webhooks import kinds
from webhooks.events.models import TRANSACTION_SQL, Event
from webhooks.events.types import Type

# One statement for an event and its deliveries: every change pays for it. A delivery's
# id begins with the time in the event's id, so that ids sort by time, as uuid7() does.
EMIT_SQL = f"""
WITH event AS (
    INSERT INTO webhooks_event (
        id, created_at, updated_at, tenant_id, type, object_type, object_key, object_id,
        sequence, body, is_example, request_id, transaction_id
    ) VALUES (
        %(id)s, %(created_at)s, %(created_at)s, %(tenant_id)s, %(type)s,
        %(object_type)s, %(object_key)s, %(object_id)s, %(sequence)s, %(body)s,
        %(is_example)s, %(request_id)s,
        {TRANSACTION_SQL % "%(object_key)s"}
    )
)
INSERT INTO webhooks_delivery (
    id, created_at, updated_at, webhook_id, event_id, object_key, sequence, status,
    attempts, calls, due_at, last_error, request_id
)
SELECT
    overlay(gen_random_uuid()::text PLACING left(%(id)s::uuid::text, 18) FROM 1)::uuid,
    %(created_at)s, %(created_at)s, webhook.id, %(id)s, %(object_key)s, %(sequence)s,
    'pending', 0, 0, %(due_at)s, '', %(caused_by)s
FROM webhooks_webhook webhook
WHERE webhook.tenant_id = %(tenant_id)s
    AND webhook.is_enabled
    AND webhook.message_types @> ARRAY[%(type)s]::varchar[]
    AND webhook.type <> ALL (%(never_called)s)
"""

# Three types of the interface are emitted only in the organization's own wallet, and
# two types of the clients only in hosted wallets. The same step in the other kind of
# wallet has its own type.
IN_HOSTED_WALLETS = {
    Type.NEW_CONNECTION: Type.CONNECTION_CONNECTED,
    Type.CREDENTIAL_REQUEST: Type.CREDENTIAL_REQUESTED,
    Type.VERIFICATION: Type.VERIFICATION_ACCEPTED,
}
IN_OWN_WALLET = {
    Type.CREDENTIAL_OFFER: Type.CREDENTIAL_OFFERED,
    Type.VERIFICATION_REQUEST: Type.VERIFICATION_REQUESTED,
}

# Called with each change in a hosted wallet of a test organization, in its transaction.
follow_test_wallet: "Hook[[EventSource], None]" = Hook()


class EventSource(Record):
    """A row of a wallet that emits an event when it is created and at every move().

    EVENTS has the event type of each pair of role and state; a test checks that it is
    complete. Subclasses have `wallet`, `tenant_id`, `role` and `state`.
    """

    EVENTS: ClassVar[dict[Any, Type]]
    OBJECT_TYPE: ClassVar[str]
    AT_MOVE: Columns = {}

    # The number of changes of the row. Each event has the number of its change.
    sequence = models.PositiveIntegerField(default=0, editable=False)

    class Meta:
        abstract = True

    def save(self, *arguments: Any, **options: Any) -> None:
        if not self._state.adding:
            super().save(*arguments, **options)
            return
        self.sequence = 1
        with transactions.atomic(savepoint=False):
            insert_row(self)
            self.emit_event()

    def emit_event(self) -> None:
        """Write the event of the last change, in the transaction of the change."""
        event_type = self.event_type
        if event_type is None:
            return
        wallet = self.wallet  # type: ignore[attr-defined]
        event = Event(
            tenant_id=self.tenant_id,  # type: ignore[attr-defined]
            type=type_in_wallet(event_type, wallet.is_organization),
            object_type=self.OBJECT_TYPE,
            object_key=self.pk,
            object_id=self.public_id,
            sequence=self.sequence,
        )
        emit_event(event, self.event_data(wallet), self.event_state)
        if not wallet.is_organization and wallet.tenant.is_test:
            follow_test_wallet(self)

    def event_data(self, wallet: Wallet) -> dict[str, JSON]:
        """The body's `data`, in the spellings of the interface and of the clients."""
        data: dict[str, JSON] = {}
        if connection_id := self.public_connection_id:
            data |= {"connection_id": connection_id, "ConnectionId": connection_id}
        if not wallet.is_organization:
            data |= {"wallet_id": wallet.wallet_id, "WalletId": wallet.wallet_id}
        if isinstance(self, NotedRow) and self.reference:
            data["reference"] = self.reference
        return data | self.event_members

    @property
    def event_members(self) -> dict[str, JSON]:
        """What else the body's `data` says of objects of this kind."""
        return {}

    @property
    def is_locked(self) -> bool:
        """Whether this transaction holds the lock that move() requires."""
        raise NotImplementedError

    @property
    def event_type(self) -> Type | None:
        """The type of the next event. None if this row emits no events."""
        return self.EVENTS[self.role, self.state]  # type: ignore[attr-defined]

    @property
    def event_state(self) -> str | None:
        """The body's `state`. None omits it."""
        return str(self.state)  # type: ignore[attr-defined]

    @property
    def public_id(self) -> str:
        """The id of the object in the API."""
        return str(self.pk)

    @property
    def public_connection_id(self) -> str | None:
        """The connection that the API shows with the object, if any."""
        raise NotImplementedError


def type_in_wallet(event_type: Type, in_own_wallet: bool) -> Type:
    """Return the event type of a step in this kind of wallet."""
    others = IN_OWN_WALLET if in_own_wallet else IN_HOSTED_WALLETS
    return others.get(event_type, event_type)


def emit_event(
    event: Event, data: Mapping[str, JSON], state: str | None = None
) -> None:
    """Store an event, and a delivery for each webhook that is subscribed to its type.

    Must run in the transaction of the change, so that no change is without its event.
    The worker is notified after the commit.
    """
    require_known_server()
    event.body = build_body(event, data, **({"state": state} if state else {}))
    if count_rows(EMIT_SQL, _emit_parameters(event)):
        transaction.on_commit(notify_delivery_worker)


def build_body(event: Event, data: Mapping[str, JSON], **members: JSON) -> str:
    """Return the body of the calls: the fields of the event, `data` and `members`."""
    common = {
        "message_type": str(event.type),
        "object_id": event.object_id,
        "object_type": event.object_type,
        "event_id": str(event.pk),
        "sequence": event.sequence,
        "created_at": event.created_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
    return json.dumps(common | {"data": data} | members)


def _emit_parameters(event: Event) -> Columns:
    """Return the parameters of EMIT_SQL.

    request_id: the id of the API call that caused the event, only if the organization
    made it: its webhooks get it, and callers may choose it. caused_by: that of any call,
    for our log lines.
    """
    is_own_call = this_call.tenant_id == event.tenant_id
    return {
        "id": event.pk,
        "created_at": event.created_at,
        "due_at": clock.now(),
        "tenant_id": event.tenant_id,
        "type": str(event.type),
        "object_type": event.object_type,
        "object_key": event.object_key,
        "object_id": event.object_id,
        "sequence": event.sequence,
        "body": event.body,
        "is_example": event.is_example,
        "request_id": this_call.request_id if is_own_call else "",
        "caused_by": this_call.request_id,
        "never_called": list(kinds.NEVER_CALLED),
    }


def notify_delivery_worker() -> None:
    faults.fault_point("after_commit_before_wake")
    notify_worker("webhooks.tasks.deliver")
