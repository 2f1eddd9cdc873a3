"""What received messages of issue-credential and revocation notification do, in both versions."""

from contextlib import suppress

from agency.errors import PeerError, WrongState
from connections.didcomm.message import problem_code
from connections.didcomm.router import closes, handles, moves
from credentials import protocol
from credentials.models import Credential


def in_thread(connection, message, *roles):
    """The exchange of this connection and thread."""
    rows = Credential.objects.select_related("connection__my_key", "wallet", "tenant__network")
    found = rows.filter(connection=connection, thread_id=message.thread_id, role__in=roles).first()
    if not found:
        raise PeerError(protocol.ABANDONED, "there is no such exchange on this connection")
    return found


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
    in_thread(connection, message, Credential.Role.ISSUER).receive_request(message)


@handles("issue-credential/1.0/issue-credential")
@handles("issue-credential/2.0/issue-credential")
def receive_credential(connection, message):
    in_thread(connection, message, Credential.Role.HOLDER).receive_credential(message)


@handles("issue-credential/1.0/ack")
@handles("issue-credential/2.0/ack")
def receive_ack(connection, message):
    """The issuer does not wait for it: the credential is issued when it is signed."""


@handles("issue-credential/1.0/problem-report")
@handles("issue-credential/2.0/problem-report")
def receive_problem(connection, message):
    in_thread(connection, message, *Credential.Role).receive_problem(problem_code(message))


@handles("revocation_notification/1.0/revoke")
@handles("revocation_notification/2.0/revoke")
def receive_revocation(connection, message):
    Credential.receive_revocation(connection, *protocol.read_revocation(message))


@closes
def decline_open(connection):
    for credential in Credential.objects.filter(connection=connection, state__in=Credential.OPEN):
        with suppress(WrongState):  # what was finished in this moment stays
            credential.decline()


@moves
def go_on_elsewhere(connection, to):
    """The other side knew us already: what an invitation of ours carried goes on there."""
    Credential.objects.filter(connection=connection).update(connection=to)
