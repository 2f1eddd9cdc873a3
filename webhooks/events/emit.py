"""How rows announce what happens to them: no change without its event."""

from typing import Any, ClassVar

from django.db import models, transaction

from agency.core import faults
from agency.core.workers import notify_worker
from tenants.models import Record
from webhooks.delivery.endpoints import Webhook
from webhooks.delivery.models import Delivery
from webhooks.events import types
from webhooks.events.models import Event
from webhooks.events.types import Type


class Announced(Record):
    """A row of a wallet whose making and whose every move() is an event.

    EVENTS says which, for each role and state; a test holds it complete. `sequence` numbers them.
    """

    EVENTS: ClassVar[dict[Any, Type]]
    OBJECT_TYPE: ClassVar[str]

    sequence = models.PositiveIntegerField(default=0, editable=False)

    class Meta:
        abstract = True

    def save(self, *arguments: Any, **options: Any) -> None:
        if not self._state.adding:
            super().save(*arguments, **options)
            return
        self.sequence = 1
        with transaction.atomic(savepoint=False):
            super().save(*arguments, **options)
            self.announce()

    def announce(self) -> None:
        """Writes the event of what just happened, in the same transaction."""
        kind = self.event_type
        if kind is None:
            return
        wallet = self.wallet  # type: ignore[attr-defined]
        event = Event(
            tenant_id=self.tenant_id,  # type: ignore[attr-defined]
            type=types.named(kind, wallet.is_organization),
            object_type=self.OBJECT_TYPE,
            object_key=self.pk,
            object_id=self.public_id,
            sequence=self.sequence,
        )
        announce(event, self.event_data(wallet), self.event_state)

    def event_data(self, wallet: Any) -> dict[str, Any]:
        """`data` of the body, with the spellings of the interface and of the original clients."""
        data: dict[str, Any] = {}
        if connection_id := self.public_connection_id:
            data |= {"connection_id": connection_id, "ConnectionId": connection_id}
        if not wallet.is_organization:
            data |= {"wallet_id": wallet.wallet_id, "WalletId": wallet.wallet_id}
        return data

    @property
    def event_type(self) -> Type | None:
        """None for rows of which nobody is told."""
        return self.EVENTS[self.role, self.state]  # type: ignore[attr-defined]

    @property
    def event_state(self) -> str | None:
        return str(self.state)  # type: ignore[attr-defined]

    @property
    def public_id(self) -> str:
        """The id by which the API knows the object."""
        return str(self.pk)

    @property
    def public_connection_id(self) -> str | None:
        """The connection that the API shows with the object, if any."""
        raise NotImplementedError


def announce(event: Event, data: dict[str, Any], state: str | None = None) -> None:
    """Stores an event and what will tell of it, inside the caller's transaction."""
    event.write(data, **({"state": state} if state else {}))
    wanted = Webhook.that_want(event.tenant_id, event.type).values_list("pk", flat=True)
    if Delivery.create(event, wanted):
        transaction.on_commit(wake)


def wake() -> None:
    faults.fault_point("after_commit_before_wake")
    notify_worker("webhooks.tasks.deliver")
