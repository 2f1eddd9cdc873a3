"""What received messages of connections/1.0 and the small protocols do."""

from django.db import transaction

from agency.errors import WrongState
from connections import protocol
from connections.didcomm import transport
from connections.didcomm.message import build, problem_code, problem_report
from connections.didcomm.router import handles
from connections.models import BasicMessage


@handles(protocol.REQUEST)
def receive_request(connection, message):
    try:
        with transaction.atomic():
            connection.receive_request(message)
    except WrongState:
        requester = protocol.read_party(message.body.get("connection"))
        report = problem_report(message, "request_not_accepted", "The invitation was used already.")
        transport.send_to(requester, report, connection.invitation_key, None)


@handles(protocol.RESPONSE)
def receive_response(connection, message):
    connection.receive_response(message)


@handles(protocol.PROBLEM)
def receive_problem(connection, message):
    connection.receive_problem(problem_code(message))


@handles(protocol.ACK)
def receive_ack(connection, message):
    """Nothing to do: that the peer spoke has confirmed the connection."""


@handles(protocol.PING)
def receive_ping(connection, message):
    if message.body.get("response_requested", True) is not False:
        answer = build(protocol.PING_RESPONSE, message.prefix, message.thread_id)
        transport.send(connection, answer)


@handles(protocol.PING_RESPONSE)
def receive_ping_response(connection, message):
    """Nothing to do: that the peer spoke has confirmed the connection."""


@handles(protocol.BASIC_MESSAGE)
def receive_basic_message(connection, message):
    BasicMessage.receive(connection, message)
