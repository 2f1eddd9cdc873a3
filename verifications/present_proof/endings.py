"""What ends an exchange, for both roles: problem reports, and connections that end.

A handler runs in a transaction that has locked the connection.
"""

from connections.didcomm.message import Message, problem_text
from connections.exchange import handles_exchange
from connections.messaging import router
from verifications.messages import PRESENT_PROOF
from verifications.models import Verification

State = Verification.State


@handles_exchange(Verification, PRESENT_PROOF, "problem-report", *Verification.Role)
def receive_problem(verification: Verification, message: Message) -> None:
    """Handle a problem report: the other side declined, or the proof is not valid.

    After the presentation it is the verdict: the prover's proof is not valid. A
    verifier has its own verdict, so receive_verdict() ignores it. A report on a
    Rejected exchange changes nothing.
    """
    if verification.state == State.ACCEPTED:
        verification.receive_verdict(False, problem_text(message) or "")
    else:
        verification.receive_problem(message)


router.end_exchanges.register(Verification.decline_open)
router.move_exchanges.register(Verification.move_to_connection)
router.expire_exchanges.register(Verification.expire_open)
