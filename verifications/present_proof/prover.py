"""The prover's side of present-proof 1.0 and 2.0 (RFCs 0037, 0454).

A handler, receive_…(), is called in a transaction that has locked the connection. A
PeerError is answered by a problem report. A shared request comes by a link, without a
connection (connectionless).
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from django.db.models import Q
from django.utils import timezone

from connections.didcomm import formats
from connections.didcomm.formats import MessageFormat, attachment_of
from connections.didcomm.message import Message, PreparedResults
from connections.didcomm.service import read_service
from connections.exchange import handles_exchange
from connections.messaging import outbox
from connections.messaging.router import handles
from connections.models import Connection
from connections.protocols import connectionless, discover_features
from core.errors import Conflict, PeerError, WrongState
from core.text.bounded_json import JSON
from core.work import network_reads, transactions
from credentials.ledgers.reads import LedgerReads
from credentials.models import Credential, CredentialFormat
from credentials.tails import tails_path
from tenants import vault
from tenants.models import Notes
from verifications import messages, previews
from verifications.attribute_meaning import resolve_attributes
from verifications.messages import PRESENT_PROOF
from verifications.models import Verification
from verifications.openid4vp import presenting
from verifications.present_proof.candidates import (
    build_candidates,
    find_credentials,
    read_batches,
)
from verifications.present_proof.requests import lazy_ledger
from verifications.proofs import presentation_building, selection
from verifications.proofs.checks import verify_own_presentation
from verifications.proofs.policy import Policy
from verifications.proofs.presentation_reading import read_presentation
from verifications.proofs.proof_items import Item
from verifications.proofs.proof_values import Proof, proof_by_item
from verifications.proofs.request_reading import ProofRequest
from verifications.proofs.selection import Candidate, Selection
from wallets.models import Wallet

Role = Verification.Role
State = Verification.State
PresentationChange = Callable[[dict[str, Any]], dict[str, Any]]
# A verifier that judges by itself has answered by then.
VERDICT_TIME = timedelta(seconds=10)


@network_reads.atomic_with_reads
def send_proposal(
    connection: Connection,
    policy: Policy,
    exchange_version: str = "",
    notes: Notes | None = None,
) -> Verification:
    """Propose a proof of a policy to the verifier, with its dates of today.

    In one transaction: it locks the connection, stores the row and enqueues the
    message. 400 `invalid_policy` if a proposal cannot express the policy, 409 if the
    connection is gone or not connected, `quota_exceeded`.

    exchange_version: instead of that of Connection.message_format_for().
    """
    connection = connection.lock_for_exchange()
    policy = policy.resolve_dates(network_reads.now())
    resolved = resolve_attributes(policy, lazy_ledger(connection))
    preview = previews.build_preview(resolved)
    names = resolved.stated_texts()
    message_format = _choose_proposal_format(connection, exchange_version, names)
    message = messages.build_proposal(preview, resolved, message_format)
    verification = Verification.build(
        connection=connection,
        role=Role.PROVER,
        thread_id=str(message["@id"]),
        message_format=message_format,
        policy=policy,
        proof_request=None,
    )
    vault.seal(verification, "proposal", preview | {"comment": policy.name})
    verification.set_notes(notes)
    verification.insert_within_quota()
    outbox.enqueue(connection, message)
    return verification


def _choose_proposal_format(
    connection: Connection, exchange_version: str, names: list[str]
) -> MessageFormat:
    """The format of a proposal on a locked connection: the usual one, or a try.

    The other format is tried if a proof in the usual one got no verdict
    (_may_be_wrong_format). If the verifier then requests in it, it is the usual one
    from then on (Connection.message_format_for). Raises ReadNeeded if the peer must
    first be asked for its versions.

    A verifier requests in the format of the proposal. ACA-Py with the wallet
    `askar-anoncreds` does so too, but cannot verify `hlindy/*` and then sends nothing
    (acapy_agent 1.7.0, present_proof/v2_0/formats/indy/handler.py: verify_pres).
    Nothing that it discloses tells the format, and of two attached formats it wants to
    verify both.
    """
    usual = discover_features.choose_format(
        connection, PRESENT_PROOF, exchange_version, names
    )
    # 1.0 has no formats, and a wallet hosted here reads both.
    if usual.is_first or connection.attachment_format or connection.is_hosted:
        return usual
    if not _may_be_wrong_format(connection, usual.format):
        return usual
    return usual._replace(format=formats.OTHER_FORMAT[usual.format])


def _may_be_wrong_format(connection: Connection, wire_format: str) -> bool:
    """Whether a proof in this format got no verdict, and nothing shows that it works.

    It works if the verifier has ever sent a verdict or begun a request, or if a
    credential was issued in it on this connection. If both formats were tried, the
    usual one is kept.
    """
    exchanged = {"connection": connection, "wire_version": "2.0"}
    proofs = Verification.objects.filter(role=Role.PROVER, **exchanged)
    unjudged = proofs.filter(
        wire_format=wire_format,
        state=State.ACCEPTED,
        is_valid=None,
    )
    moment = timezone.now() - VERDICT_TIME
    if not unjudged.filter(Q(updated_at__lt=moment) | Q(moved_at__lt=moment)).exists():
        return False
    was_judged = Q(is_valid__isnull=False)
    verifier_began = Q(proposal=None)
    other_was_tried = ~Q(wire_format=wire_format)
    known = proofs.filter(was_judged | verifier_began | other_was_tried)
    issued = Credential.objects.filter(
        role=Credential.Role.HOLDER, wire_format=wire_format, **exchanged
    ).exclude(issued_at=None)
    return not known.exists() and not issued.exists()


@handles("present-proof/1.0/request-presentation")
@handles("present-proof/2.0/request-presentation")
def receive_request(connection: Connection, message: Message) -> Verification:
    """Store the verifier's request.

    It may answer our proposal, and may then differ from it. A repeated request changes
    nothing. PeerError if it cannot be read, or is another one in the same thread.
    """
    proof_request = attachment_of(message, formats.PROOF_REQUEST)
    policy = ProofRequest.parse(proof_request).to_policy()
    verification = Verification.find_in_thread(
        connection, Role.PROVER, message.thread_id
    )
    if verification is None:
        verification = _build_requested(connection, message, policy, proof_request)
        verification.insert_within_quota()
    elif verification.state == State.PROPOSED:
        verification.receive_request(message, policy, proof_request)
    elif vault.unseal(verification, "request_body") != proof_request:
        raise PeerError(messages.ABANDONED, "this exchange has its request already")
    return verification


def preview_shared_request(wallet: Wallet, message: Message) -> Verification:
    """Return an unsaved row for a shared request, to find credentials that fit.

    Nothing is written, so another wallet can still answer the request. Its connection
    is not saved either.
    """
    proof_request = attachment_of(message, formats.PROOF_REQUEST)
    policy = ProofRequest.parse(proof_request).to_policy()
    connection = Connection(tenant=wallet.tenant, wallet=wallet)
    return _build_requested(connection, message, policy, proof_request)


def _build_requested(
    connection: Connection,
    message: Message,
    policy: Policy,
    proof_request: dict[str, JSON],
) -> Verification:
    return Verification.build(
        connection=connection,
        role=Role.PROVER,
        thread_id=message.thread_id,
        message_format=formats.format_of(message),
        policy=policy,
        proof_request=proof_request,
    )


class PreparedAnswer(NamedTuple):
    """A presentation, and what it was made from.

    proof: what it shows. credential_sequences: how often each credential had changed,
    by its id. results: for a verifier hosted here.
    """

    proof_request: ProofRequest
    presentation: dict[str, JSON]
    proof: Proof
    credential_sequences: dict[str, int]
    results: PreparedResults | None


def prepare_shared_answer(
    wallet: Wallet, message: Message, selections: Sequence[Selection] | None = None
) -> PreparedAnswer:
    """Make the presentation for a shared request, as prepare_answer() does.

    Nothing is written. Also the errors of connectionless.find_shared(), and 409
    `wrong_state` if this wallet has answered the request.
    """
    known, _ = connectionless.find_shared(wallet, message)
    rows = Verification.objects.filter(connection=known, thread_id=message.thread_id)
    verification = rows.select_related("connection").first() if known else None
    if verification is None:
        verification = preview_shared_request(wallet, message)
        assert verification.connection
        verification.connection.their_endpoint = read_service(message).endpoint
    return prepare_answer(verification, selections)


@network_reads.atomic_with_reads
def answer_shared_request(
    wallet: Wallet, message: Message, prepared: PreparedAnswer
) -> Verification:
    """Answer a shared request with what prepare_shared_answer() made.

    All in one transaction, which first locks the wallet. Call
    `connectionless.discard_if_beaten` after the commit: only then is it known whether
    another wallet answered first. The errors of connectionless.accept_shared() and of
    send_answer().
    """
    verification = _receive_shared(wallet, message)
    send_answer(verification, prepared)
    return verification


@network_reads.atomic_with_reads
def decline_shared_request(
    wallet: Wallet, message: Message, reason: str = ""
) -> Verification:
    """Decline a shared request. As after an answer, call `discard_if_beaten`."""
    verification = _receive_shared(wallet, message)
    verification.decline(reason)
    return verification


def _receive_shared(wallet: Wallet, message: Message) -> Verification:
    """Accept the link, and store its request unless an earlier call did."""
    connection = connectionless.accept_shared(wallet, message)
    rows = Verification.objects.filter(
        connection=connection, thread_id=message.thread_id
    )
    return rows.first() or receive_request(connection, message)


def find_available(verification: Verification) -> list[tuple[Item, list[Credential]]]:
    """Return each requested item with the wallet's credentials that satisfy it.

    They come oldest first. It decrypts every credential that has a requested
    attribute, and reads the ledger: 503 Unavailable if that does not respond; in a
    transaction, ReadNeeded (core/work/network_reads.py). WrongState if there is only
    a proposal.
    """
    if verification.format == CredentialFormat.SD_JWT:
        return presenting.find_available(verification)
    proof_request, candidates, by_id = find_candidates(verification)
    return [
        (item, [by_id[identifier] for identifier in fitting])
        for item, fitting in selection.find_fitting(proof_request.items, candidates)
    ]


def find_unfit(verification: Verification) -> list[tuple[Item, Credential, bool]]:
    """Return the wallet's credentials that are asked for and do not satisfy an item.

    Of items that none satisfies, oldest first, each with the item and whether it is
    known to be revoked. If it is not, a comparison does not hold, as of the last day
    with today. Errors as of find_available(). Of requests for SD-JWT VCs none is told.
    """
    if verification.format == CredentialFormat.SD_JWT:
        return []
    proof_request, candidates, by_id = find_candidates(verification)
    unfit = []
    for item in proof_request.items:
        codes = [selection.unfit_code(item, candidate) for candidate in candidates]
        if None in codes:
            continue
        unfit += [
            (item, by_id[candidate.credential_id], candidate.is_revoked)
            for candidate, code in zip(candidates, codes, strict=True)
            if code in ("revoked_or_invalid", "predicate_not_met")
        ]
    return unfit


def find_candidates(
    verification: Verification,
) -> tuple[ProofRequest, list[Candidate], dict[str, Credential]]:
    """Return the proof request, its candidates, and their credentials by id."""
    proof_request = verification.require_proof_request()
    credentials = list(find_credentials(verification.wallet, proof_request))
    candidates = build_candidates(credentials, LedgerReads(verification.tenant))
    by_id = {str(credential.pk): credential for credential in credentials}
    return proof_request, candidates, by_id


def answer_request(
    verification: Verification,
    selections: Sequence[Selection] | None = None,
    change: PresentationChange | None = None,
) -> None:
    """Make the presentation and send it: prepare_answer(), then send_answer().

    Of OpenID4VP: see presenting.answer_again().
    """
    if verification.format == CredentialFormat.SD_JWT:
        presenting.answer_again(verification, selections)
        return
    send_answer(verification, prepare_answer(verification, selections, change))


def prepare_answer(
    verification: Verification,
    selections: Sequence[Selection] | None = None,
    change: PresentationChange | None = None,
) -> PreparedAnswer:
    """Make the presentation for a request, outside of transactions. Nothing is sent.

    It may take minutes on a busy machine. Credentials are decrypted, oldest first,
    until all items are answered, or the selected ones are found. The row may be
    unsaved. Inside of a transaction, a ledger that must be read raises ReadNeeded.

    selections: items without one stay unanswered. Without selections each item is
    answered with the oldest credential that fits, but never with one known to be
    revoked, even if the request allows it, nor with one whose definition the ledger
    does not know. If nothing fits, the presentation is empty.

    change: made to the presentation, by a holder that is simulated.

    409 `wrong_state`, 503 `ledger_unavailable`; 400 `unknown_policy`,
    `unknown_credential`, `selected_twice`, `attribute_missing`, `restriction_not_met`
    or `hidden_not_allowed` for a wrong selection, with all of them in `errors`; the
    other errors of presentation_building.create_presentation().
    """
    if verification.state != State.REQUESTED:
        raise WrongState(verification, [State.REQUESTED])
    if verification.format == CredentialFormat.SD_JWT:
        raise Conflict("wrong_state", "Answer it in the wallet, where it is called.")
    proof_request = verification.require_proof_request()
    items = proof_request.items
    ledger = LedgerReads(verification.tenant)
    candidates: list[Candidate] = []
    sequences: dict[str, int] = {}
    chosen = selections or []
    for credentials in read_batches(verification.wallet, proof_request):
        candidates += build_candidates(credentials, ledger)
        sequences |= {str(one.pk): one.sequence for one in credentials}
        if selections is None:
            chosen = selection.auto_select(items, candidates)
            are_enough = len(chosen) == len(items)
        else:
            are_enough = sequences.keys() >= {one.credential_id for one in selections}
        if are_enough:
            break
    presentation = presentation_building.create_presentation(
        proof_request,
        chosen,
        candidates,
        verification.wallet.unseal_link_secret(),
        ledger,
        tails_path,
    )
    if change:
        presentation = change(presentation)
    # By the same code as that of others: we made it, so its predicates are proven.
    parsed = read_presentation(presentation)
    connection = verification.live_connection
    results = None
    # A verifier hosted here verifies in the transaction that sends, under its locks.
    if connection and connection.seems_hosted and not ledger.network_ledger.is_remote:
        results = verify_own_presentation(proof_request, parsed, ledger)
    used = {one.credential_id for one in chosen}
    return PreparedAnswer(
        proof_request,
        presentation,
        proof_by_item(items, parsed, is_valid=True),
        {name: sequences[name] for name in used},
        results,
    )


@transactions.atomic()
def send_answer(verification: Verification, prepared: PreparedAnswer) -> None:
    """Store and send a presentation, unless what it was made from has changed.

    In one transaction: it locks the connection and the credentials, moves the row and
    enqueues the message. The `proof` of the row is what our presentation shows. 409
    `wrong_state` if the request or a credential has changed, or the credential is gone;
    409 `connection_gone`, 503 `organization_frozen`.
    """
    presentation = prepared.presentation
    verification.lock_to_act()
    # Of a change of the stored row present() takes notice.
    if vault.unseal(verification, "request_body") != prepared.proof_request.body:
        raise WrongState(verification, [State.REQUESTED], is_stale=True)
    _lock_unchanged(verification.wallet, prepared.credential_sequences)
    verification.present(presentation, prepared.proof)
    verification.send_message(
        messages.build_presentation(
            presentation, verification.thread_id, verification.message_format
        ),
        prepared.results,
    )


def _lock_unchanged(wallet: Wallet, sequences: dict[str, int]) -> None:
    """Lock these credentials, and check that they are as they were when read."""
    rows = Credential.objects.filter(wallet=wallet, pk__in=sequences).order_by("pk")
    locked = rows.select_for_update(no_key=True).values_list("pk", "sequence")
    if {str(pk): sequence for pk, sequence in locked} != sequences:
        raise WrongState(Credential(), [], is_stale=True)


@handles_exchange(Verification, PRESENT_PROOF, "ack", Role.PROVER)
def receive_ack(verification: Verification, message: Message) -> None:
    """Store the verifier's verdict. A later one changes nothing."""
    verification.receive_verdict(messages.is_found_valid(message))
