"""The verifier's side of present-proof 1.0 and 2.0 (RFCs 0037, 0454).

A handler, receive_…(), is called in a transaction that has locked the connection. A
PeerError is answered by a problem report. A ledger that must be read first raises
ReadNeeded, and the message is handled again after the read.
"""

from uuid import UUID

from connections.didcomm import formats
from connections.didcomm.formats import attachment_of
from connections.didcomm.message import Message
from connections.exchange import handles_exchange
from connections.messaging.router import handles
from connections.models import Connection
from connections.protocols import connectionless
from connections.protocols.out_of_band import OutOfBandOptions
from core.errors import PeerError
from core.work import network_reads
from credentials.ledgers.reads import LedgerReads
from tenants import vault
from tenants.models import Notes, Tenant
from verifications import messages, previews
from verifications.attribute_meaning import resolve_attributes
from verifications.messages import PRESENT_PROOF
from verifications.models import Verification
from verifications.present_proof.requests import (
    admit_twins,
    build_request_now,
    choose_format,
    lazy_ledger,
)
from verifications.proofs.checks import judge_presentation
from verifications.proofs.policy import Policy
from verifications.twins import find_twins
from wallets.models import Wallet

Role = Verification.Role
State = Verification.State


@network_reads.atomic_with_reads
def send_request(
    connection: Connection,
    policy: Policy,
    policy_id: UUID | None = None,
    notes: Notes | None = None,
) -> Verification:
    """Send a proof request for a policy to a connection.

    The verification has the dates of today in place of relative ones. In one
    transaction: it locks the connection, stores the row and enqueues the message, or
    stores it for the link if the connection is a new one. 400 `not_yet_due`, 409 if the
    connection is gone or not connected, `quota_exceeded`.
    """
    connection = connection.lock_for_exchange()
    policy = policy.resolve_dates(network_reads.now())
    resolved = resolve_attributes(policy, lazy_ledger(connection))
    twins = find_twins(policy, connection.tenant_id)
    message_format = choose_format(connection, resolved, twins)
    policy, resolved = admit_twins(twins, message_format, policy, resolved)
    proof_request = build_request_now(resolved, connection.tenant_id)
    message = messages.build_request(proof_request, message_format)
    verification = Verification.build(
        connection=connection,
        role=Role.VERIFIER,
        thread_id=str(message["@id"]),
        message_format=message_format,
        policy=policy,
        proof_request=proof_request,
    )
    verification.policy_id = policy_id
    verification.set_notes(notes)
    verification.insert_within_quota()
    connectionless.send_first_message(connection, message)
    return verification


@network_reads.atomic_with_reads
def send_request_by_link(
    wallet: Wallet,
    policy: Policy,
    policy_id: UUID | None = None,
    options: OutOfBandOptions | None = None,
    exchange_version: str = "",
    attachment_format: str = "",
    notes: Notes | None = None,
) -> Verification:
    """Create a proof request as a link. The first wallet that accepts it answers.

    In one transaction: it creates the connection of the link, which nobody else can see
    yet, and stores the request in it. options: of an out-of-band invitation to which
    the request is attached; without them the link contains the request itself.
    exchange_version, attachment_format: see connectionless.create_link(). 400 `not_yet_due`, 409
    `quota_exceeded`.
    """
    link = connectionless.create_link(
        wallet, options, exchange_version, attachment_format
    )
    return send_request(link, policy, policy_id, notes)


@handles("present-proof/1.0/propose-presentation")
@handles("present-proof/2.0/propose-presentation")
def receive_proposal(connection: Connection, message: Message) -> None:
    """Store the prover's proposal.

    A later proposal replaces it until it is answered. A repeated proposal changes
    nothing. PeerError for one that cannot be read, or over a link.
    """
    if connection.connectionless:
        raise PeerError(
            messages.ABANDONED, "a connectionless exchange takes no proposals"
        )
    preview, policy = previews.read_proposal(message)
    preview["comment"] = str(message.body.get("comment") or "")[:200]
    verification = Verification.find_in_thread(
        connection, Role.VERIFIER, message.thread_id
    )
    if verification is None:
        verification = Verification.build(
            connection=connection,
            role=Role.VERIFIER,
            thread_id=message.thread_id,
            message_format=formats.format_of(message),
            policy=policy,
            proof_request=None,
        )
        vault.seal(verification, "proposal", preview)
        verification.insert_within_quota()
        return
    is_repeated = (
        verification.state == State.PROPOSED
        and vault.unseal(verification, "proposal") == preview
        and verification.unsealed_policy() == policy
    )
    if not is_repeated:
        verification.receive_proposal(message, policy, preview)


@network_reads.atomic_with_reads
def answer_proposal(
    verification: Verification,
    policy: Policy | None = None,
    policy_id: UUID | None = None,
) -> None:
    """Request the proposed proof, or a proof of another policy.

    In one transaction, in the thread of the proposal. The ledger is read before the
    connection is locked. 400 `not_yet_due`, 409 `wrong_state`, `connection_gone`.
    """
    if policy is None:
        policy = verification.unsealed_policy()
        # A proposal names its attributes, so there is nothing to resolve.
        resolved = policy
    else:
        policy = policy.resolve_dates(network_reads.now())
        resolved = resolve_attributes(policy, lazy_ledger(verification))
        twins = find_twins(policy, verification.tenant_id)
        message_format = verification.message_format
        policy, resolved = admit_twins(twins, message_format, policy, resolved)
    proof_request = build_request_now(resolved, verification.tenant_id)
    verification.lock_to_act()
    verification.answer_proposal(policy, proof_request, policy_id)
    verification.send_message(
        messages.build_request(
            proof_request, verification.message_format, verification.thread_id
        )
    )


@handles_exchange(Verification, PRESENT_PROOF, "presentation", Role.VERIFIER)
def receive_presentation(verification: Verification, message: Message) -> None:
    """Check the presentation and send the verdict.

    An invalid one is accepted too: the verdict, the checks and the values are stored
    with the state in one move. A repeated presentation gets the same verdict again.
    """
    presentation = attachment_of(message, formats.PRESENTATION)
    if (
        verification.state == State.ACCEPTED
        and vault.unseal(verification, "presentation") == presentation
    ):
        _send_verdict(verification)
        return
    policy = verification.unsealed_policy()
    # The last transition of an open verification is the request.
    requested_at = int(verification.in_state_since.timestamp())
    outcome = judge_presentation(
        verification.require_proof_request(),
        presentation,
        LedgerReads(verification.tenant, for_peer=True),
        at_receipt=policy.interval_at_receipt(requested_at, network_reads.now()),
        allows_interval=policy.allows_interval,
        prepared=message.prepared,
        with_definition=policy.items_or_twins(),
    )
    verification.receive_presentation(message, presentation, outcome)
    _send_verdict(verification)


def _send_verdict(verification: Verification) -> None:
    """Send an ack for a valid proof, else what the organization has chosen.

    That is a problem report, or an ack that says that the proof is not valid.
    """
    thread_id = verification.thread_id
    answer = verification.tenant.invalid_proof_answer
    if verification.is_valid or answer == Tenant.InvalidProofAnswer.ACK:
        verdict = messages.build_ack(
            thread_id, verification.message_format, bool(verification.is_valid)
        )
    else:
        verdict = messages.build_problem_report(
            messages.NOT_VALID,
            verification.list_causes()[0].message,
            thread_id,
            verification.message_format,
        )
    verification.send_message(verdict)
