"""What received messages of present-proof do, in both versions."""

from contextlib import suppress

from agency.errors import PeerError, WrongState
from connections.didcomm.message import problem_code
from connections.didcomm.router import closes, handles, moves
from verifications import protocol
from verifications.models import Verification


def in_thread(connection, message, *roles):
    """The exchange of this connection and thread."""
    rows = Verification.objects.select_related("connection__my_key", "wallet", "tenant__network")
    found = rows.filter(connection=connection, thread_id=message.thread_id, role__in=roles).first()
    if not found:
        raise PeerError(protocol.ABANDONED, "there is no such exchange on this connection")
    return found


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
    in_thread(connection, message, Verification.Role.VERIFIER).receive_presentation(message)


@handles("present-proof/1.0/ack")
@handles("present-proof/2.0/ack")
def receive_ack(connection, message):
    in_thread(connection, message, Verification.Role.PROVER).receive_ack()


@handles("present-proof/1.0/problem-report")
@handles("present-proof/2.0/problem-report")
def receive_problem(connection, message):
    in_thread(connection, message, *Verification.Role).receive_problem(problem_code(message))


@closes
def decline_open(connection):
    rows = Verification.objects.filter(connection=connection, state__in=Verification.OPEN)
    for verification in rows:
        with suppress(WrongState):  # what was finished in this moment stays
            verification.decline()


@moves
def go_on_elsewhere(connection, to):
    """The other side knew us already: what an invitation of ours carried goes on there."""
    Verification.objects.filter(connection=connection).update(connection=to)
