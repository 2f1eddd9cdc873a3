"""The base of issuances and verifications: a thread of messages on a connection."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import cache
from typing import Any, ClassVar, Self, TypeVar
from uuid import UUID

from django.core.exceptions import ObjectDoesNotExist
from django.db import models
from django.db.models.functions import Coalesce
from django.utils import timezone

from connections.didcomm import reasons
from connections.didcomm.formats import HLINDY, VERSIONS, MessageFormat, format_of
from connections.didcomm.message import Body, Message, PreparedResults, problem_text
from connections.link_expiry import LINK_EXPIRED
from connections.messaging import outbox, pair_lock, router
from connections.models import Connection
from core.database.compiled_sql import CompiledQuery
from core.errors import Conflict, EndedByPeer, PeerError, WrongState
from core.states import Transitions, move
from core.work import transactions
from tenants import quotas, vault
from tenants.models import NotedRow
from webhooks.events.emit import EventSource

# What an exchange needs to be moved: for select_related().
PARTIES = ("connection__my_key", "wallet", "tenant__network")
OPEN_OF_STRANGER = 3  # exchanges that it begins, at a time


class Exchange(EventSource, NotedRow):
    """A thread of messages on a connection, with a state.

    wire_version, wire_format: of the last received message (see MessageFormat).
    OPEN: the states in which the exchange is not finished: it can be rejected.
    ABANDONED: the code of its problem reports.
    """

    TRANSITIONS: ClassVar[Transitions]
    OPEN: ClassVar[tuple[str, ...]]
    ABANDONED: ClassVar[str]
    AT_MOVE = {"moved_at": None}
    # What subclasses have:
    objects: ClassVar["models.Manager[Any]"]
    State: ClassVar[Any]
    role: Any
    state: Any
    tenant: Any
    problem: Any
    format: Any

    # Also to a deleted one, until a worker has removed its row: see live_connection.
    connection = models.ForeignKey(Connection, on_delete=models.SET_NULL, null=True)
    thread_id = models.CharField(max_length=128)
    wire_version = models.CharField(max_length=3, default="1.0")
    wire_format = models.CharField(max_length=9, default=HLINDY)
    # Why it was declined, in the words of the side that did. Sealed.
    reason = models.BinaryField(null=True)
    # `updated_at` of before its notes were changed; null again at each move().
    moved_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        abstract = True

    @property
    def in_state_since(self) -> datetime:
        """When it was moved last: other than `updated_at`, without changes of notes."""
        return self.moved_at or self.updated_at

    @classmethod
    def unmoved_since(
        cls, moment: datetime, **filters: Any
    ) -> list["models.QuerySet[Any]"]:
        """The rows that match and were moved last before this moment, in two parts.

        Those without later notes and those with them: an index serves each, in its
        order, the oldest first. Each row has `since`, as in_state_since.
        """
        rows = cls.objects.filter(**filters)
        parts = {
            "updated_at": rows.filter(moved_at=None, updated_at__lt=moment),
            "moved_at": rows.filter(moved_at__lt=moment),
        }
        return [
            part.annotate(since=models.F(column)).order_by(column)
            for column, part in parts.items()
        ]

    def times_of_notes(self) -> dict[str, Any]:
        moved_at = Coalesce("moved_at", "updated_at")
        return {"moved_at": moved_at, **super().times_of_notes()}

    def build_decline(self, reason: str) -> Body:
        """The message of a side that declines. reason: in its own words, or empty."""
        raise NotImplementedError

    @property
    def message_format(self) -> MessageFormat:
        """The format for the next message: that of the last one received.

        Without a prefix if there is no connection any more.
        """
        prefix = self.connection.message_prefix if self.connection else ""
        return MessageFormat(prefix, self.wire_version, self.wire_format)

    @property
    def problem_in_words(self) -> str:
        """Why it ended before it was done, or "". Never a text of a stranger."""
        return reasons.in_words(self.problem) if self.problem else ""

    @property
    def has_free_text(self) -> bool:
        """Whether its `problem` is a text of a stranger, in no list of ours."""
        return self.problem_in_words == reasons.UNKNOWN

    def unsealed_reason(self) -> str | None:
        return vault.unseal(self, "reason")

    def sealed_reason(self, reason: str | None) -> bytes | None:
        return vault.sealed_value(self, "reason", reason or None)

    @property
    def event_members(self) -> dict[str, Any]:
        return {"thread_id": self.thread_id, "format": str(self.format)}

    @property
    def live_connection(self) -> Connection | None:
        """The connection. None as soon as it is deleted, also while its row exists."""
        connection = self.connection
        return None if connection is None or connection.deleted_at else connection

    @property
    def is_by_link(self) -> bool:
        """Whether it has, or had, no connection but that of its link."""
        connection = self.live_connection
        return connection is None or connection.connectionless

    @property
    def own_link(self) -> Connection | None:
        """The connection of the link by which it was started here, or None.

        Not that of the link by which its connection was made before.
        """
        connection = self.live_connection
        if connection is None or not connection.token:
            return None
        is_own = connection.connectionless or connection.carries_exchange
        return connection if is_own else None

    @property
    def public_connection_id(self) -> str | None:
        """The id of the connection as the API shows it.

        None for a connectionless exchange, and once the connection was deleted.
        """
        connection = self.connection
        if connection is None or connection.connectionless:
            return None
        # Events of what a worker ends on a deleted one (removal.py) name it still.
        if connection.deleted_at and not connection.is_locked:
            return None
        return connection.connection_id

    def lock(self) -> None:
        """Lock the connection and the peer's, before this exchange changes.

        In transactions.atomic(), until it ends. `connection` is the locked row
        afterwards, or None if it was deleted. This row is not read again: move() notices
        if it has changed. 503 `organization_frozen` while either party is being moved.
        """
        connection = self.live_connection
        self._use_locked(connection and connection.lock())

    def lock_to_act(self) -> None:
        """Lock it as lock() does, for a step that a party takes by itself.

        409 `wrong_state` (EndedByPeer) if the other party is hosted here and has ended
        the exchange already: its message waits to be handled, and this step would be
        refused. The errors of lock() and Connection.adopt().
        """
        self._lock_open()
        if self.connection:
            self.connection.adopt()

    def _lock_open(self) -> None:
        """Lock it, unless the other party has ended it (EndedByPeer)."""
        self.lock()
        if self.connection:
            locked = self.connection.locked_with
            waiting = pair_lock.find_waiting(locked, self.thread_id)
            if waiting and self._is_ended_by(waiting):
                raise EndedByPeer(self)

    def _is_ended_by(self, connections: list[Connection]) -> bool:
        rows = type(self).objects.filter(connection__in=connections)
        others = rows.filter(thread_id=self.thread_id).exclude(pk=self.pk)
        return others.exclude(state__in=self.OPEN).exists()

    def lock_and_reload_state(self) -> bool:
        """Lock it as lock() does, then read its state. Return False if it is deleted."""
        self.lock()
        try:
            self.refresh_from_db(fields=["state", "sequence"])
        except ObjectDoesNotExist:
            return False
        return True

    @property
    def is_locked(self) -> bool:
        if self.connection is None:
            return True  # nothing to lock: the sequence alone decides
        return self.connection.is_locked

    def _use_locked(self, connection: Connection | None) -> None:
        """Refer to the locked row of the connection, or to none, and to its parties.

        From now on find_on_connection() finds this object.
        """
        self.connection = connection
        if connection:
            self.wallet = connection.wallet
            self.tenant = connection.wallet.tenant
            connection.locked_exchanges[type(self), self.thread_id] = self

    @staticmethod
    def behind_link(token: str) -> models.Q:
        """Those of a link of a live organization.

        As conditions of joins: PostgreSQL may plan a subquery beside the joins of
        PARTIES in the order in which they are written (`join_collapse_limit`), which
        reads all exchanges of the organization.
        """
        is_live = {"wallet__deleted_at": None, "tenant__deleted_at": None}
        return models.Q(
            connection__token=token,
            connection__token__gt="",  # as the index has it
            connection__deleted_at=None,
            **is_live,
        )

    @classmethod
    def find_on_connection(cls, connection: Connection, thread_id: str) -> Self | None:
        """The row of a thread on a locked connection, or None.

        It is the same object for all code of this transaction.
        """
        assert connection.is_locked, "call lock() first"
        if known := connection.locked_exchanges.get((cls, thread_id)):
            return known
        found = compiled_thread(cls).first(connection.pk, thread_id)
        return found and cls._shared(found, connection)

    @classmethod
    def _shared(cls, row: Self, connection: Connection) -> Self:
        """The object of this row that all code of this transaction uses."""
        known = connection.locked_exchanges.get((cls, row.thread_id))
        if known is None:
            known = row
            row._use_locked(connection)
        return known

    @classmethod
    def require_in_thread(
        cls, connection: Connection, message: Message, *roles: str
    ) -> Self:
        """The exchange of a message's thread in one of these roles.

        PeerError without one, with the code of the model's problem reports (ABANDONED).
        The connection is locked: inbox.handle() did that.
        """
        found = cls.find_on_connection(connection, message.thread_id)
        if not found or found.role not in roles:
            raise PeerError(
                cls.ABANDONED, "there is no such exchange on this connection"
            )
        return found

    @classmethod
    def find_in_thread(
        cls, connection: Connection, role: str, thread_id: str
    ) -> Self | None:
        """Find the row of a thread on a locked connection, or None.

        It is the same object for all code of this transaction. PeerError, with the
        code of the model's problem reports (ABANDONED), if we have the other role in
        it.
        """
        row = cls.find_on_connection(connection, thread_id)
        if row and row.role != role:
            raise PeerError(cls.ABANDONED, "we have the other role in this thread")
        return row

    @transactions.atomic()
    def decline(self, reason: str = "") -> None:
        """Either side: end an open exchange and tell the other side, if it is there.

        In one transaction, with the lock of the connection. reason: for the other
        side, in the words of this one, or a code of reasons.DECLINES; sealed. 409
        `wrong_state`, 503 `organization_frozen`.
        """
        self._lock_open()
        self._decline_locked(reasons.DECLINES.get(reason, reason))

    def _decline_locked(self, reason: str = "") -> None:
        move(
            self,
            self.OPEN,
            self.State.REJECTED,
            problem="declined",
            reason=self.sealed_reason(reason),
            **self.columns_when_declined(),
        )
        if self.connection:
            outbox.enqueue_if_possible(self.connection, self.build_decline(reason))

    def columns_when_declined(self) -> dict[str, Any]:
        """What else changes when this side declines. With the lock."""
        return {}

    def receive_problem(self, message: Message) -> None:
        """The other side has ended the exchange. A finished one does not change.

        Whether a link has expired is for the side to say that offers or asks.
        """
        if self.state not in self.OPEN:
            return
        makes_links = self.role in ("issuer", "verifier")
        ours = ("declined", LINK_EXPIRED) if makes_links else ("declined",)
        move(
            self,
            self.OPEN,
            self.State.REJECTED,
            problem=reasons.read_problem(message, ours),
            reason=self.sealed_reason(problem_text(message)),
        )
        self.withdraw_waiting()

    @classmethod
    def decline_open(cls, connection: Connection, limit: int | None = None) -> int:
        """Decline open exchanges of a connection that is about to end: all, or some.

        Return how many there were; the oldest come first. In the caller's transaction,
        which has locked the connection. Each emits an event and tells the peer.
        """
        found = cls.objects.filter(connection=connection, state__in=cls.OPEN)
        rows = list(found.order_by("pk")[:limit])
        for row in rows:
            with suppress(WrongState):  # finished in this transaction
                cls._shared(row, connection)._decline_locked()
        return len(rows)

    @classmethod
    def abandon_open(cls, connection: Connection) -> None:
        """End the open exchanges of a connection whose peer is gone. Send nothing."""
        cls._reject_open(connection, cls.ABANDONED)

    @classmethod
    def expire_open(cls, connection: Connection, problem: str) -> None:
        """End the open exchange of an expired link. There is no peer to be told."""
        cls._reject_open(connection, problem)

    @classmethod
    def _reject_open(cls, connection: Connection, problem: str) -> None:
        rows = cls.objects.filter(connection=connection, state__in=cls.OPEN)
        for found in rows.order_by("pk"):
            row = cls._shared(found, connection)
            move(row, cls.OPEN, cls.State.REJECTED, problem=problem)

    @classmethod
    def move_to_connection(cls, connection: Connection, to: Connection) -> None:
        """Move the exchanges of an invitation to the connection that is reused."""
        cls.objects.filter(connection=connection).update(
            connection=to, updated_at=timezone.now()
        )

    def insert_within_quota(self) -> None:
        """Save a new row and emit its event, in one transaction.

        409 `quota_exceeded` at the organization's limit of open exchanges, or at that
        of a stranger. If the connection is locked, find_on_connection() returns this
        object from now on.
        """
        if self.connection and self.connection.is_locked:
            self._use_locked(self.connection)
        quotas.require_room(quotas.OPEN_EXCHANGES, self.tenant)
        self._limit_stranger()
        self.save(force_insert=True)

    def _limit_stranger(self) -> None:
        """Raise QuotaExceeded if a stranger has begun too many that are still open.

        Else few strangers would use up the organization's limit. What it begins itself
        is on a connection of its own by then (Connection.adopt).
        """
        connection = self.connection
        if connection is None or connection.stranger is None:
            return
        number = sum(
            model.objects.filter(connection=connection, state__in=model.OPEN).count()
            for model in Exchange.__subclasses__()
        )
        if number >= OPEN_OF_STRANGER and quotas.applies(self.tenant):
            raise quotas.QuotaExceeded(quotas.OPEN_EXCHANGES)

    def send_message(
        self, message: Body, prepared: PreparedResults | None = None
    ) -> None:
        """Enqueue a message to the peer, in the caller's transactions.atomic().

        prepared: for the handler of a peer that is hosted here.

        409 `connection_gone` if the connection was deleted or ended by either side,
        503 `organization_frozen` while the peer is being moved.
        """
        outbox.enqueue(self.require_connection(), message, prepared=prepared)

    def withdraw_waiting(self) -> None:
        """Withdraw our messages of the thread that wait for a hosted peer.

        Call this when the peer has ended the exchange: it would refuse them.
        """
        if self.connection:
            outbox.withdraw_waiting(self.connection, self.thread_id)

    def require_connection(self) -> Connection:
        """Return the connection. 409 `connection_gone` if it was deleted."""
        connection = self.live_connection
        if connection is None:
            raise Conflict("connection_gone", f"The connection of {self} was deleted.")
        return connection


@cache
def compiled_thread(model: type[Exchange]) -> CompiledQuery[Any]:
    return CompiledQuery(
        lambda connection, thread_id: model.objects.filter(
            connection=connection, thread_id=thread_id
        ),
        UUID,
        str,
    )


def format_columns(message: Message) -> dict[str, str]:
    """Return the column values that record the format of a received message."""
    message_format = format_of(message)
    return {
        "wire_version": message_format.version,
        "wire_format": message_format.format,
    }


Row = TypeVar("Row", bound=Exchange)
ExchangeHandler = Callable[[Row, Message], None]


def handles_exchange(
    model: type[Row], protocol: str, name: str, *roles: str
) -> Callable[[ExchangeHandler[Row]], ExchangeHandler[Row]]:
    """Register a handler `(exchange, message)` of a message in both versions.

    It is called with the connection locked. The exchange is found by connection and
    thread, and we must have one of `roles` in it; otherwise the sender gets a problem
    report. The decorated function is returned unchanged, so it can be called directly.
    RuntimeError if the message has a handler already.
    """

    def register(function: ExchangeHandler[Row]) -> ExchangeHandler[Row]:
        def handle(connection: Connection, message: Message) -> None:
            function(model.require_in_thread(connection, message, *roles), message)

        for version in VERSIONS:
            router.handles(f"{protocol}/{version}/{name}")(handle)
        return function

    return register
