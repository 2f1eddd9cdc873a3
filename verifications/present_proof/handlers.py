"""What received messages of present-proof do, in both versions."""

from connections.didcomm.message import problem_code
from connections.messaging.router import (
    handles,
    on_connection_ended,
    on_connection_merged,
)
from verifications.models import Verification
from verifications.present_proof.messages import is_found_valid


@handles("present-proof/1.0/propose-presentation")
@handles("present-proof/2.0/propose-presentation")
def receive_proposal(connection, message):
    Verification.receive_proposal(connection, message)


@handles("present-proof/1.0/request-presentation")
@handles("present-proof/2.0/request-presentation")
def receive_request(connection, message):
    Verification.receive_request(connection, message)


@handles("present-proof/1.0/presentation")
@handles("present-proof/2.0/presentation")
def receive_presentation(connection, message):
    exchange = Verification.answered(connection, message, Verification.Role.VERIFIER)
    exchange.receive_presentation(message)


@handles("present-proof/1.0/ack")
@handles("present-proof/2.0/ack")
def receive_ack(connection, message):
    exchange = Verification.answered(connection, message, Verification.Role.PROVER)
    exchange.receive_ack(is_found_valid(message))


@handles("present-proof/1.0/problem-report")
@handles("present-proof/2.0/problem-report")
def receive_problem(connection, message):
    exchange = Verification.answered(connection, message, *Verification.Role)
    exchange.receive_problem(problem_code(message))


on_connection_ended(Verification.decline_open)
on_connection_merged(Verification.go_on_elsewhere)
