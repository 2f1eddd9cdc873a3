"""What received messages do that make, keep or end a connection, and texts."""

from django.db import transaction

from agency.core.errors import WrongState
from connections.didcomm.message import build, problem_code, problem_report
from connections.messaging import transport
from connections.messaging.router import handles
from connections.models import BasicMessage, Connection
from connections.protocols import (
    connections_1_0,
    did_exchange,
    did_rotate,
    discover_features,
    out_of_band,
)
from connections.protocols.handshakes import requester
from tenants.quotas import QuotaExceeded


@handles(connections_1_0.REQUEST)
@handles("didexchange/1.0/request", "1.1")
def receive_request(connection, message):
    try:
        with transaction.atomic():
            connection.receive_request(message)
    except WrongState:
        refuse_request(connection, message, "The invitation was used already.")
    except QuotaExceeded:
        refuse_request(
            connection, message, "No further connections are accepted at present."
        )


def refuse_request(connection, message, explanation):
    """Tells a stranger that its request to connect was not accepted, unless too much of that waits
    undelivered."""
    if connection.may_refuse:
        for report in refusals(message, explanation):
            transport.send_to(requester(message), report, connection.inviting_key, None)


def refusals(message, explanation):
    """The report in both spellings that are in use, as no agent knows both: that of Credo
    (`connection/1.0/problem-report` for connections/1.0), then that of the RFCs and ACA-Py. A phone
    without an address takes the first one only."""
    report = problem_report(message, "request_not_accepted", explanation)
    name, version = message.protocol
    family = "connection" if name == "connections" else name
    members = {
        name: report[name] for name in report if name not in ("@type", "@id", "~thread")
    }
    kind = f"{family}/{version}/problem-report"
    return [build(kind, message.prefix, message.thread_id, **members), report]


@handles(connections_1_0.RESPONSE)
@handles("didexchange/1.0/response", "1.1")
def receive_response(connection, message):
    connection.receive_response(message)


@handles(connections_1_0.PROBLEM)
@handles(did_exchange.PROBLEM)
def receive_problem(connection, message):
    connection.receive_problem(problem_code(message))


@handles(connections_1_0.ACK)
@handles(did_exchange.COMPLETE)
@handles(connections_1_0.PING_RESPONSE)
@handles(out_of_band.PROBLEM)
def hear(connection, message):
    """Nothing to do: that the peer spoke has confirmed the connection."""


@handles(connections_1_0.PING)
def receive_ping(connection, message):
    if message.body.get("response_requested", True) is not False:
        answer = build(connections_1_0.PING_RESPONSE, message.prefix, message.thread_id)
        transport.send(connection, answer)


@handles(connections_1_0.BASIC_MESSAGE)
def receive_basic_message(connection, message):
    BasicMessage.receive(connection, message)


@handles("out-of-band/1.0/handshake-reuse", "1.1")
def receive_reuse(connection, message):
    connection.receive_reuse(message)


@handles("out-of-band/1.0/handshake-reuse-accepted", "1.1")
def receive_reuse_accepted(connection, message):
    connection.receive_reuse_accepted(message)


@handles(discover_features.QUERY)
def receive_query(connection, message):
    transport.send(connection, discover_features.disclose(message))


@handles(discover_features.QUERIES)
def receive_queries(connection, message):
    transport.send(connection, discover_features.disclosures(message))


@handles(discover_features.DISCLOSE)
@handles(discover_features.DISCLOSURES)
def receive_disclosures(connection, message):
    told = discover_features.disclosed(message)
    Connection.objects.filter(pk=connection.pk).update(disclosed=told)


@handles(did_rotate.ROTATE)
def receive_rotate(connection, message):
    connection.receive_rotate(message)


@handles(did_rotate.ACK)
def receive_rotated(connection, message):
    connection.receive_rotated(message.thread_id)


@handles(did_rotate.PROBLEM)
def refuse_rotation(connection, message):
    connection.refuse_rotation(message.thread_id)


@handles(did_rotate.HANGUP)
def receive_hangup(connection, message):
    connection.receive_hangup()
