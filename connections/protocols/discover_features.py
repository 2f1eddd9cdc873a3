"""discover-features 1.0 and 2.0 (RFCs 0031, 0557): which protocols are supported."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from django.utils import timezone

from connections.didcomm.dids import DID_WEBVH
from connections.didcomm.formats import ANONCREDS, MessageFormat
from connections.didcomm.message import OLD_PREFIX, PREFIX, Body, Message, build, text
from connections.messaging import outbox, router
from connections.messaging.router import handles
from connections.models import Connection
from core.errors import Conflict, PeerError
from core.text.bounded_json import JSON
from core.work import network_reads, transactions, waiting

QUERY = "discover-features/1.0/query"
DISCLOSE = "discover-features/1.0/disclose"
QUERIES = "discover-features/2.0/queries"
DISCLOSURES = "discover-features/2.0/disclosures"
# Our roles in each protocol. Add a new protocol here too.
ROLES = {
    "basicmessage": ["sender", "receiver"],
    "connections": ["inviter", "invitee"],
    "did-rotate": ["rotating_party", "observing_party"],
    "didexchange": ["requester", "responder"],
    "discover-features": ["requester", "responder"],
    "issue-credential": ["issuer", "holder"],
    "notification": ["sender", "receiver"],
    "out-of-band": ["sender", "receiver"],
    "present-proof": ["verifier", "prover"],
    "revocation_notification": ["notifier", "notified"],
    "trust_ping": ["sender", "receiver"],
}
PROTOCOL_ID = re.compile(r"(?:^|[/;])([\w-]{1,40})/(\d{1,4}\.\d{1,4})/?$", re.ASCII)
MAX_LISTED = 200  # entries of a list that are read; the rest is ignored
MAX_QUERIES = 8  # that are answered
# For which the first exchange waits to learn what the peer supports.
ANSWER_SECONDS = 2.0


def choose_format(
    connection: Connection, protocol: str, version: str = "", names: Iterable[str] = ()
) -> MessageFormat:
    """Return the format of a new exchange on a locked connection.

    version: the caller's choice, which comes before that of
    Connection.message_format_for(). names: ids and DIDs that the exchange is about.
    Those of did:webvh can be written in `anoncreds/*` of version 2.0 alone: 409
    `needs_version_2` if the peer has only 1.0, or that was chosen.

    A peer that connected by connections/1.0 is asked what it supports before the first
    exchange whose version depends on it. Its answer is awaited for ANSWER_SECONDS,
    outside of transactions: inside one this raises ReadNeeded, and the transaction is
    run again after the answer (core/work/network_reads.py). Without an answer, the
    version usual with the handshake.
    """
    asked_at = connection.features_asked_at
    # A peer without an endpoint fetches one message by each call: it would get the
    # question in place of the exchange.
    may_ask = (
        not (version or connection.exchange_version or connection.attachment_format)
        and not connection.connectionless
        and bool(connection.their_endpoint)
        and connection.state == Connection.State.CONNECTED
    )
    # Not asked yet, or it may still answer in time.
    is_pending = asked_at is None or _seconds_left(asked_at) > 0
    if may_ask and is_pending and connection.is_version_unknown(protocol):
        read = partial(_ask_and_wait, connection.pk)
        network_reads.read_outside_transaction(("features", connection.pk), read)
    chosen = connection.message_format_for(protocol).in_version(version)
    if not any(name.startswith(DID_WEBVH) for name in names):
        return chosen
    if not may_use_second(connection, protocol, version):
        raise Conflict(
            "needs_version_2",
            f"What is published by a did:webvh needs {protocol}/2.0, which this "
            "connection does not use. If the other side has it, set `exchangeVersion` "
            "of the connection to 2.0.",
        )
    return MessageFormat(chosen.prefix, "2.0", ANONCREDS)


def may_use_second(connection: Connection, protocol: str, version: str = "") -> bool:
    """Whether 2.0 was not excluded: by a choice, or by what the peer has shown."""
    if wanted := version or connection.exchange_version:
        return wanted == "2.0"
    if connection.is_hosted or connection.attachment_format:
        return True
    if connection.disclosed:
        return f"{protocol}/2.0" in connection.disclosed
    return connection.spoken.get(protocol, ["2.0"])[0] == "2.0"


def _seconds_left(asked_at: datetime) -> float:
    end = asked_at + timedelta(seconds=ANSWER_SECONDS)
    return (end - timezone.now()).total_seconds()


def _ask_and_wait(connection_id: UUID) -> None:
    """Ask the peer once, and wait for its answer. Outside of transactions."""
    asked_at = ask_once(connection_id)
    unanswered = Connection.objects.filter(pk=connection_id, disclosed=[])
    if asked_at:
        waiting.poll_for_peer(lambda: not unanswered.exists(), _seconds_left(asked_at))


@transactions.atomic()
def ask_once(connection_id: UUID) -> datetime | None:
    """Send the query unless it was sent. Return when it was, or None without a peer.

    In a transaction of its own, with the lock of the connection, so that one of several
    calls asks. It is RFC 0031's: agents of connections/1.0 may not know its successor.
    """
    found = Connection.objects.filter(pk=connection_id).first()
    connection = found and found.lock()
    if connection is None or connection.left_at:
        return None
    if connection.features_asked_at is None:
        connection.update_columns(features_asked_at=timezone.now())
        query = build(QUERY, connection.message_prefix, query="*")
        outbox.enqueue(connection, query, is_optional=True)
    return connection.features_asked_at


def build_queries(prefix: str) -> Body:
    """Build a query for all protocols."""
    asked = [{"feature-type": "protocol", "match": f"{PREFIX}*"}]
    return build(QUERIES, prefix, queries=asked)


@handles(QUERY)
def receive_query(connection: Connection, message: Message) -> None:
    """Answer a query of version 1.0 with our protocols that match it, and our roles."""
    protocols = [
        {
            "pid": message.prefix + protocol,
            "roles": ROLES[protocol.partition("/")[0]],
        }
        for protocol in _matching_protocols(text(message.body, "query"))
    ]
    answer = build(DISCLOSE, message.prefix, message.thread_id, protocols=protocols)
    outbox.enqueue(connection, answer)


@handles(QUERIES)
def receive_queries(connection: Connection, message: Message) -> None:
    """Answer queries of version 2.0. We disclose protocols, no other features."""
    queries = [
        text(query, "match")
        for query in _listed_objects(message.body, "queries")
        if query.get("feature-type") == "protocol"
    ]
    found = {
        name for query in queries[:MAX_QUERIES] for name in _matching_protocols(query)
    }
    features = [
        {
            "feature-type": "protocol",
            "id": message.prefix + protocol,
            "roles": ROLES[protocol.partition("/")[0]],
        }
        for protocol in sorted(found)
    ]
    answer = build(DISCLOSURES, message.prefix, message.thread_id, disclosures=features)
    outbox.enqueue(connection, answer)


@handles(DISCLOSE)
@handles(DISCLOSURES)
def receive_disclosures(connection: Connection, message: Message) -> None:
    """Store which protocols the peer supports, in place of what it disclosed before.

    Whether it was asked does not matter. choose_format() may wait for this.
    """
    rows = Connection.objects.filter(pk=connection.pk)
    rows.update(disclosed=read_protocols(message))


def read_protocols(message: Message) -> list[str]:
    """The disclosed protocols that are known here, as in `issue-credential/2.0`."""
    is_version_1 = message.major_type.startswith("discover-features/1/")
    member, name = ("protocols", "pid") if is_version_1 else ("disclosures", "id")
    found = [
        PROTOCOL_ID.search(str(one.get(name)))
        for one in _listed_objects(message.body, member)
    ]
    return sorted(
        {f"{match[1]}/{match[2]}" for match in found if match and match[1] in ROLES}
    )


def _listed_objects(body: dict[str, JSON], member: str) -> list[dict[str, JSON]]:
    listed = body.get(member)
    if not isinstance(listed, list):
        raise PeerError("message_parse_failure", f"{member} is no list")
    return [one for one in listed[:MAX_LISTED] if isinstance(one, dict)]


def _matching_protocols(query: str) -> list[str]:
    """Our protocols that match a query with `*`, with either prefix."""
    parts = [re.escape(part) for part in re.split(r"\*+", query[:200])]
    pattern = re.compile(".*".join(parts))
    names = sorted(router.supported_protocols())
    return [
        name
        for name in names
        if pattern.fullmatch(PREFIX + name) or pattern.fullmatch(OLD_PREFIX + name)
    ]
