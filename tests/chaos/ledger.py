"""What the database knows, read past the product: rows, events, deliveries."""

import json
from collections import defaultdict
from contextlib import contextmanager
from typing import Any, NamedTuple
from uuid import UUID

import psycopg

TABLES = (
    "connections_connection", "connections_basicmessage", "credentials_credential",
    "verifications_verification", "webhooks_webhook",
)  # fmt: skip
QUEUES = (
    "webhooks_delivery",
    "connections_outboundmessage",
    "connections_inboundmessage",
)


class Told(NamedTuple):
    """An event."""

    id: str
    tenant: str
    object_key: UUID
    sequence: int
    body: str


class Ledger:
    def __init__(self, url: str) -> None:
        self.url = url

    @contextmanager
    def connected(self) -> Any:
        with psycopg.connect(self.url, autocommit=True) as connection:
            yield connection

    def rows(self, query: str) -> list[Any]:
        with self.connected() as connection:
            return connection.execute(query).fetchall()

    def pending(self) -> dict[str, int]:
        count = "SELECT count(*) FROM {} WHERE status = 'pending'"
        return {name: self.rows(count.format(name))[0][0] for name in QUEUES}

    def describe_pending(self) -> str:
        """The rows that wait, a line each; what is sealed or large is left out."""
        dropped = "'{envelope,body,payload,message,document}'"
        query = (
            f"SELECT to_jsonb(waiting) - {dropped}::text[] FROM {{}} AS waiting "
            "WHERE status = 'pending' LIMIT 20"
        )
        return "\n".join(
            f"{name}: {row}"[:1500]
            for name in QUEUES
            for [row] in self.rows(query.format(name))
        )

    def let_time_pass(self, lease: float) -> None:
        """What waits is due now. Leases of `lease` seconds and more are over."""
        over = f"lease_until < now() + make_interval(secs => {60 - lease})"
        with self.connected() as connection:
            for name in QUEUES:
                wait = (
                    "status = 'pending' AND due_at > now() AND (lease_owner IS NULL "
                    f"OR {over})"
                )
                connection.execute(f"UPDATE {name} SET due_at = now() WHERE {wait}")
                wait = f"status = 'pending' AND lease_until > now() AND {over}"
                connection.execute(
                    f"UPDATE {name} SET lease_until = now() WHERE {wait}"
                )

    def sequences(self) -> dict[Any, int]:
        """The number of events of each object that should have events."""
        query = "SELECT id, sequence FROM {} WHERE sequence > 0"
        return dict(row for name in TABLES for row in self.rows(query.format(name)))

    def events(self) -> list[Told]:
        names = "id::text, tenant_id::text, object_key, sequence, body"
        return [Told(*row) for row in self.rows(f"SELECT {names} FROM webhooks_event")]

    def announced(self) -> set[tuple[str, str | None]]:
        """(object id, state) of all events, of which none is missing or there twice."""
        told = "SELECT object_key FROM webhooks_event WHERE type = 'database_restored'"
        restored = {key for (key,) in self.rows(told)}  # of no object
        events = [one for one in self.events() if one.object_key not in restored]
        numbers = defaultdict[Any, list[int]](list)
        for event in events:
            numbers[event.object_key].append(event.sequence)
        found = {key: sorted(one) for key, one in numbers.items()}
        wanted = {
            key: list(range(1, last + 1)) for key, last in self.sequences().items()
        }
        wrong = {key for key in found | wanted if found.get(key) != wanted.get(key)}
        assert not wrong, [(key, found.get(key), wanted.get(key)) for key in wrong]
        bodies = (json.loads(event.body) for event in events)
        return {(body["object_id"], body.get("state")) for body in bodies}

    def deliveries(self) -> dict[tuple[str, str], str]:
        """(event, webhook) -> status."""
        names = "event_id::text, webhook_id::text, status"
        found = self.rows(f"SELECT {names} FROM webhooks_delivery")
        return {(event, webhook): status for event, webhook, status in found}
