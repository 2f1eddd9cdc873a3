"""What received messages of issue-credential and revocation notification do, in both versions."""

from connections.didcomm.message import problem_code
from connections.messaging.router import closes, handles, moves
from credentials.issue_credential import messages
from credentials.models import Credential


@handles("issue-credential/1.0/propose-credential")
@handles("issue-credential/2.0/propose-credential")
def receive_proposal(connection, message):
    Credential.receive_proposal(connection, message)


@handles("issue-credential/1.0/offer-credential")
@handles("issue-credential/2.0/offer-credential")
def receive_offer(connection, message):
    Credential.receive_offer(connection, message)


@handles("issue-credential/1.0/request-credential")
@handles("issue-credential/2.0/request-credential")
def receive_request(connection, message):
    exchange = Credential.answered(connection, message, Credential.Role.ISSUER)
    exchange.receive_request(message)


@handles("issue-credential/1.0/issue-credential")
@handles("issue-credential/2.0/issue-credential")
def receive_credential(connection, message):
    exchange = Credential.answered(connection, message, Credential.Role.HOLDER)
    exchange.receive_credential(message)


@handles("issue-credential/1.0/ack")
@handles("issue-credential/2.0/ack")
def receive_ack(connection, message):
    """The issuer does not wait for it: the credential is issued when it is signed."""


@handles("issue-credential/1.0/problem-report")
@handles("issue-credential/2.0/problem-report")
def receive_problem(connection, message):
    Credential.reported(connection, message).receive_problem(problem_code(message))


@handles("revocation_notification/1.0/revoke")
@handles("revocation_notification/2.0/revoke")
def receive_revocation(connection, message):
    Credential.receive_revocation(connection, *messages.read_revocation(message))


closes(Credential.decline_open)
moves(Credential.go_on_elsewhere)
