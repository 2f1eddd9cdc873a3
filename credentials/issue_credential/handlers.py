"""Handlers of issue-credential and revocation notification, in both versions.

RFCs 0036 and 0453, RFCs 0183 and 0721. Proposals are in proposals.py.

A handler is called in a transaction that has locked the connection of the message
(connections/transport/inbox.py). What it sends is enqueued in it too. A PeerError or a
Conflict is answered by a problem report. A ledger that must be read first raises
ReadNeeded, and the message is handled again after the read.
"""

import logging
from functools import partial

from django.db import transaction
from django.db.models import QuerySet

from connections.didcomm import formats
from connections.didcomm.formats import attachment_of
from connections.didcomm.message import Message, PreparedResults
from connections.exchange import PARTIES, handles_exchange
from connections.messaging import router
from connections.messaging.router import handles, locks_others
from connections.models import Connection
from connections.protocols import connectionless
from core.errors import Conflict, PeerError, WrongState
from core.work import network_reads, transactions
from credentials import messages, revocation
from credentials.issue_credential import proposals
from credentials.messages import ISSUE_CREDENTIAL
from credentials.models.credential import (
    Credential,
    PreparedIssuance,
)
from tenants import vault
from wallets import anoncreds
from wallets.anoncreds.objects import CredentialBody, OfferBody, Opaque
from wallets.models import Wallet

logger = logging.getLogger(__name__)
Role = Credential.Role
State = Credential.State


@handles("issue-credential/1.0/offer-credential")
@handles("issue-credential/2.0/offer-credential")
def receive_offer(connection: Connection, message: Message) -> Credential:
    """Holder: store an offer, which may answer a proposal.

    Until the holder accepts, a later offer replaces it. The same offer again changes
    nothing, unless the holder has proposed something else since: then the issuer
    insists on its offer.
    """
    offer = messages.read_offer(message)
    values = messages.read_preview(message)
    known = Credential.find_in_thread(connection, Role.HOLDER, message.thread_id)
    if known is None:
        known = proposals.find_answered_in_new_thread(
            connection, message, offer, values
        )
    if known:
        if not _is_repeated_offer(known, offer, values):
            known.receive_offer(message, offer, values)
        return known
    credential = Credential(
        connection=connection,
        role=Role.HOLDER,
        tenant_id=connection.tenant_id,
        wallet_id=connection.wallet_id,
    )
    for field, value in credential.offered_columns(message, offer, values).items():
        setattr(credential, field, value)
    credential.insert_within_quota()
    return credential


def _is_repeated_offer(
    credential: Credential, offer: OfferBody, values: dict[str, str]
) -> bool:
    """Whether this offer was received before, and is open or answered.

    The values of an answered one are not compared: they may be those of the credential.
    """
    if credential.state == State.PROPOSED:
        return False
    if not credential.has_same("offer_body", offer):
        return False
    return credential.state != State.OFFERED or credential.has_same("values", values)


@network_reads.atomic_with_reads
def accept_shared_offer(wallet: Wallet, message: Message) -> Credential:
    """Holder: accept an offer from a link. A second call returns the same credential.

    All in one transaction, which first locks the wallet. Only after the commit is it
    known whether another wallet was faster: call discard_if_beaten() then. 400
    `own_message`, 409 `offer_taken`, `offer_gone`, and the errors of accept().
    """
    connection = connectionless.accept_shared(wallet, message)
    known = Credential.objects.filter(
        connection=connection, thread_id=message.thread_id
    )
    credential = known.first() or receive_offer(connection, message)
    if credential.state == State.OFFERED:
        credential.accept()
    return credential


@handles_exchange(Credential, ISSUE_CREDENTIAL, "request-credential", Role.ISSUER)
def receive_request(credential: Credential, message: Message) -> None:
    """Issuer: the holder has accepted. If the offer is automatic, it is issued next.

    The same request again changes nothing. After a crash between this transaction and
    the issuance tasks.finish_what_was_left_behind() goes on.
    """
    request = attachment_of(message, formats.REQUEST)
    is_repeated = credential.state != State.OFFERED and credential.has_same(
        "request_body", request
    )
    if is_repeated:
        return
    credential.receive_request(message, request)
    if credential.automatic_issuance:
        _schedule_issuance(credential, message.prepared)


def _schedule_issuance(
    credential: Credential, prepared: PreparedResults | None
) -> None:
    """Issue at the end of this transaction; if it fails there, after the commit.

    A revocable credential for which accept() has reserved no slot is issued after the
    commit too: a slot is reserved outside of the transaction. prepared: by the holder's
    accept(), a PreparedIssuance.
    """
    if not isinstance(prepared, PreparedIssuance) or not prepared.is_for(credential):
        prepared = None
    else:
        credential.definition = prepared.definition
    if credential.definition.supports_revocation and not (prepared and prepared.slot):
        _issue_after_commit(credential)
    else:
        transactions.before_commit(partial(_issue_before_commit, credential, prepared))


def _issue_before_commit(
    credential: Credential, prepared: PreparedIssuance | None
) -> None:
    try:
        issue_automatically(credential, prepared)
    except Exception as error:  # what was received stands
        logger.warning("not issued before the commit: %r", error, exc_info=True)
        _issue_after_commit(credential)


def _issue_after_commit(credential: Credential) -> None:
    def issue() -> None:
        # Read again: an attempt that was rolled back has changed the object.
        rows = Credential.objects.select_related(*PARTIES)
        if found := rows.filter(pk=credential.pk).first():
            issue_automatically(found)

    transaction.on_commit(issue, robust=True)


def issue_automatically(
    credential: Credential, prepared: PreparedIssuance | None = None
) -> None:
    """Issuer: issue the requested credential. Decline if it cannot be signed.

    Does nothing if the exchange has ended. Other errors of issue() are raised; then
    the slot is lost.
    """
    try:
        _issue_or_decline(credential, prepared)
    except Conflict as error:
        # Either side has ended the exchange in the meantime.
        if error.code not in ("wrong_state", "connection_gone"):
            raise


def _issue_or_decline(
    credential: Credential, prepared: PreparedIssuance | None
) -> None:
    slot = prepared.slot if prepared else None
    try:
        credential.issue(
            slot=slot or revocation.reserve_slot(credential), prepared=prepared
        )
    except PeerError:
        # Read again: the attempt, which was rolled back, has changed the object.
        if found := Credential.objects.filter(pk=credential.pk).first():
            found.decline()


def _values_in_order(stored: CredentialBody, offered: list[str]) -> dict[str, str]:
    """The values of a credential as the offer had them: the library's have no order.

    offered: the normalised names.
    """
    places = {name: place for place, name in enumerate(offered)}
    labels = {name: anoncreds.normalise_name(name) for name in stored["values"]}

    def place_of(name: str) -> tuple[int, str]:
        return places.get(labels[name], len(places)), name

    names = sorted(stored["values"], key=place_of)
    return {name: stored["values"][name]["raw"] for name in names}


@handles_exchange(Credential, ISSUE_CREDENTIAL, "issue-credential", Role.HOLDER)
def receive_credential(credential: Credential, message: Message) -> None:
    """Holder: verify and store a credential, and send an ack.

    A repeated credential is acknowledged again. PeerError `issuance-abandoned` for
    another definition or an id of a registry that is none, `credential_refused` if it
    does not verify. 409 `wrong_state` if the holder has not accepted an offer. The
    errors of the ledger, and ReadNeeded.
    """
    issued = attachment_of(message, formats.CREDENTIAL)
    if issued.get("cred_def_id") != credential.definition_id:
        raise PeerError(messages.ABANDONED, "the credential is of another definition")
    if credential.state == State.ISSUED and _is_stored(credential, issued):
        _send_ack(credential)
        return
    if credential.state != State.REQUESTED:
        raise WrongState(credential, [State.REQUESTED])
    registry_id = _registry_id_in(issued)
    stored = _process_credential(
        credential, issued, registry_id, message.prepared or PreparedResults()
    )
    values = _values_in_order(stored, credential.attribute_names)
    credential.receive_credential(stored, values, registry_id)
    _send_ack(credential)


def _registry_id_in(issued: Opaque) -> str:
    """The id of the registry of an issued credential, or "". PeerError if it is none."""
    registry_id = issued.get("rev_reg_id") or ""
    if not isinstance(registry_id, str) or len(registry_id) > messages.MAX_REGISTRY_ID:
        raise PeerError(messages.ABANDONED, "rev_reg_id of the credential is no id")
    return registry_id


def _process_credential(
    credential: Credential,
    issued: Opaque,
    registry_id: str,
    prepared: PreparedResults,
) -> CredentialBody:
    """Verify the credential and complete it with the link secret. Return it.

    registry_id: "" of a credential that cannot be revoked. PeerError
    `credential_refused`.
    """
    registry = None
    definition = credential.public_definition
    if registry_id:
        registry = credential.ledgers.revocation_registry(registry_id)
        if registry and not anoncreds.is_registry_of(
            registry, credential.definition_id, definition
        ):
            # Whoever controls that registry could revoke it, and no verifier takes it.
            raise PeerError(
                "credential_refused", "its registry is of another definition or issuer"
            )
    return prepared.call(
        anoncreds.process_credential,
        issued,
        vault.unseal(credential, "request_metadata"),
        credential.wallet.unseal_link_secret(),
        definition,
        registry,
    )


def _is_stored(credential: Credential, issued: Opaque) -> bool:
    """Whether this is the stored credential.

    The signature is not compared, because processing changes it.
    """
    stored = vault.unseal(credential, "credential")
    members = ("values", "signature_correctness_proof")
    return all(stored.get(name) == issued.get(name) for name in members)


def _send_ack(credential: Credential) -> None:
    credential.send_message(
        messages.build_ack(credential.thread_id, credential.message_format)
    )


@handles("issue-credential/1.0/ack")
@handles("issue-credential/2.0/ack")
def receive_ack(connection: Connection, message: Message) -> None:
    """Issuer: do nothing. A credential counts as issued once it is signed."""


# Not handles_exchange(): reports of Credo name no thread.
@handles("issue-credential/1.0/problem-report")
@handles("issue-credential/2.0/problem-report")
def receive_problem(connection: Connection, message: Message) -> None:
    """Either side: the other side has ended the exchange.

    If it seems to have refused a proposal for its format alone, the holder proposes
    the same in the other format instead.
    """
    credential = find_reported(connection, message)
    if proposals.wants_other_format(credential, message):
        proposals.propose_in_other_format(credential)
        return
    credential.receive_problem(message)


def find_reported(connection: Connection, message: Message) -> Credential:
    """The exchange that a problem report is about.

    Credo's reports of version 1.0 name no thread. They are then about the only open
    offer of that version. PeerError if there is none, or more than one.
    """
    try:
        return Credential.require_in_thread(connection, message, *Role)
    except PeerError:
        names_thread = message.thread_id != message.id
        if names_thread or not formats.format_of(message).is_first:
            raise
        open_offers = Credential.objects.filter(
            connection=connection,
            role=Role.ISSUER,
            state=State.OFFERED,
            wire_version=Connection.Version.FIRST,
        )[:2]
        if len(open_offers) != 1:
            raise
        found = Credential.find_on_connection(connection, open_offers[0].thread_id)
        assert found
        return found


@locks_others("revocation_notification/1.0/revoke")
@locks_others("revocation_notification/2.0/revoke")
def find_connections_of_revoked(
    connection: Connection, message: Message
) -> list[Connection]:
    """Holder: the other connections of the credential that is said to be revoked."""
    found = _find_named(connection, *messages.read_revocation(message))
    others = [one.live_connection for one in found.exclude(connection=connection)]
    return [other for other in others if other]


@handles("revocation_notification/1.0/revoke")
@handles("revocation_notification/2.0/revoke")
def receive_revocation(connection: Connection, message: Message) -> None:
    """Holder: mark a credential as revoked, if the published list confirms it.

    The notification alone is not trusted: anybody on a connection can send it. The
    credential may be of another connection of the wallet, which was locked with that
    of the message.
    """
    registry_id, index = messages.read_revocation(message)
    for credential in _find_named(connection, registry_id, index):
        credential.lock()
        if credential.ledgers.is_revoked(registry_id, index):
            credential.receive_revocation()


def _find_named(
    connection: Connection, registry_id: str, index: int
) -> QuerySet[Credential]:
    """The credentials of the wallet of the connection with a slot in a registry.

    index: of the slot, by which lists of the registry name it. More than one credential
    has it only if the issuer has used it twice.
    """
    return Credential.objects.select_related(*PARTIES).filter(
        wallet_id=connection.wallet_id,
        role=Role.HOLDER,
        state=State.ISSUED,
        revocation_registry_id=registry_id,
        revocation_index=index,
    )


router.end_exchanges.register(Credential.decline_open)
router.move_exchanges.register(Credential.move_to_connection)
router.expire_exchanges.register(Credential.expire_open)
