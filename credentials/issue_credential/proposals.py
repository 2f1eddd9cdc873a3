"""Proposals (RFCs 0036, 0453): the holder proposes a credential, the issuer offers."""

from django.db.models import Q, QuerySet

from connections.didcomm import formats
from connections.didcomm.dids import DID_WEBVH
from connections.didcomm.formats import format_of
from connections.didcomm.message import Message, problem_code, problem_text
from connections.exchange import format_columns
from connections.messaging import outbox
from connections.messaging.router import handles
from connections.models import Connection
from connections.protocols import discover_features
from core.errors import Conflict, Invalid, PeerError, WrongState
from core.work import network_reads, transactions
from credentials import messages
from credentials.issue_credential import proposal_messages
from credentials.messages import FilterName, Proposal
from credentials.models.credential import Credential
from credentials.models.definition import CredentialDefinition
from tenants import vault
from tenants.models import Notes, Tenant
from wallets.anoncreds.objects import OfferBody
from wallets.models import Wallet

Role = Credential.Role
State = Credential.State


@network_reads.atomic_with_reads
def propose(
    connection: Connection,
    proposed: Proposal,
    exchange_version: str = "",
    notes: Notes | None = None,
) -> Credential:
    """Holder: propose a credential.

    In one transaction: it locks the connection, stores the row and enqueues the
    message. The errors of Connection.lock_for_exchange(), 409 `quota_exceeded`, and
    ReadNeeded inside another transaction.

    exchange_version: instead of that of Connection.message_format_for().
    """
    connection = connection.lock_for_exchange()
    message_format = discover_features.choose_format(
        connection,
        messages.ISSUE_CREDENTIAL,
        exchange_version,
        names=[text for text in proposed.values() if isinstance(text, str)],
    )
    message = proposal_messages.build_proposal(proposed, message_format)
    credential = create_proposed(
        connection,
        Role.HOLDER,
        str(message["@id"]),
        proposed,
        {"wire_version": message_format.version, "wire_format": message_format.format},
        notes,
    )
    outbox.enqueue(connection, message)
    return credential


@transactions.atomic()
def counter_offer(credential: Credential, changes: Proposal) -> None:
    """Holder: answer an offer with a proposal, in the same thread.

    changes: to what was offered. If they name a definition in any way, the offered one
    is not named any more. 400 `invalid_request`, 409 `already_offered`, and the errors
    of Exchange.lock_to_act().
    """
    credential.lock_to_act()
    proposed: Proposal = {"credentialValues": credential.unsealed_values() or {}}
    if not proposal_messages.FILTER_MEMBERS.keys() & changes:
        proposed["definitionId"] = credential.definition_id
        proposed["schemaId"] = credential.schema_id
    proposed |= changes
    # As read_proposal() returns it: without empty members.
    proposed = proposal_messages.drop_empty(proposed)
    problem = proposal_messages.find_problem(proposed.get("credentialValues", {}))
    if problem:
        raise Invalid("invalid_request", problem, {"credentialValues": [problem]})
    # The issuer would treat it as a repetition of the first proposal.
    if credential.state == State.OFFERED and _is_repeated(credential, proposed):
        raise Conflict(
            "already_offered",
            "You proposed this and it was offered: accept it, or propose something "
            "else.",
        )
    credential.counter(proposed)
    message = proposal_messages.build_proposal(
        proposed, credential.message_format, credential.thread_id
    )
    credential.send_message(message)


def wants_other_format(credential: Credential, report: Message) -> bool:
    """Holder: whether an agent may have refused a proposal for its format alone.

    ACA-Py with the wallet `askar-anoncreds` offers nothing for a proposal in
    `hlindy/*`. Its report has the code in place of an explanation (acapy_agent 1.7.0,
    issue_credential/v2_0/routes.py); a person who declines gives one. Peers do not
    disclose their formats, so the other one is tried, once.
    """
    if credential.role != Role.HOLDER or credential.state != State.PROPOSED:
        return False
    if credential.message_format.is_first or credential.wire_format != formats.HLINDY:
        return False
    if credential.connection and credential.connection.attachment_format:
        return False  # chosen here
    was_offered = credential.offer_body is not None
    return not was_offered and problem_text(report) == problem_code(report)


def propose_in_other_format(credential: Credential) -> None:
    """Holder: propose the same again. The row moves to a new thread.

    The report has ended the first one. Called by its handler, in its transaction, in
    which nothing looks for the new thread any more.
    """
    proposed = credential.unsealed_proposal()
    assert proposed, "a check constraint of the table"
    message_format = credential.message_format._replace(format=formats.ANONCREDS)
    message = proposal_messages.build_proposal(proposed, message_format)
    credential.propose_again(str(message["@id"]), message_format)
    credential.send_message(message)


@handles("issue-credential/1.0/propose-credential")
@handles("issue-credential/2.0/propose-credential")
def receive_proposal(connection: Connection, message: Message) -> None:
    """Issuer: store the proposal of the holder.

    Until the holder accepts an offer, a later proposal replaces it. The same proposal
    again changes nothing, unless something else was offered since.
    """
    if connection.connectionless:
        raise PeerError(
            messages.ABANDONED, "a connectionless exchange takes no proposals"
        )
    proposed = proposal_messages.read_proposal(message)
    thread_id = message.thread_id
    credential = Credential.find_in_thread(connection, Role.ISSUER, thread_id)
    if credential is None and thread_id != message.id:
        raise PeerError(
            messages.ABANDONED, "there is no such exchange on this connection"
        )
    if credential is None:
        create_proposed(
            connection, Role.ISSUER, thread_id, proposed, format_columns(message)
        )
    elif not _is_repeated(credential, proposed):
        credential.receive_proposal(message, proposed)


def _is_repeated(credential: Credential, proposed: Proposal) -> bool:
    """Whether this was proposed before, and nothing else was offered since."""
    if not credential.has_same("proposal", proposed):
        return False
    if credential.state != State.OFFERED:
        return True
    offered = {
        "definitionId": credential.definition_id,
        "schemaId": credential.schema_id,
        "credentialValues": credential.unsealed_values(),
    }
    return all(proposed.get(name, value) == value for name, value in offered.items())


def create_proposed(
    connection: Connection,
    role: str,
    thread_id: str,
    proposed: Proposal,
    written: dict[str, str],
    notes: Notes | None = None,
) -> Credential:
    """Create a thread that begins with a proposal. written: its format columns."""
    credential = Credential(
        tenant_id=connection.tenant_id,
        wallet_id=connection.wallet_id,
        connection=connection,
        role=role,
        state=State.PROPOSED,
        thread_id=thread_id,
        attribute_names=[],
        definition_id=proposed.get("definitionId", ""),
        schema_id=proposed.get("schemaId", ""),
        **written,
    )
    vault.seal(credential, "proposal", proposed)
    credential.set_notes(notes)
    credential.insert_within_quota()
    return credential


def find_answered_in_new_thread(
    connection: Connection,
    message: Message,
    offer: OfferBody,
    values: dict[str, str],
) -> Credential | None:
    """Holder: the oldest proposal that an offer in a new thread answers, or None.

    offer: what is attached to the message. values: of its preview. The caller has
    locked the connection.
    ACA-Py answers a proposal of version 1.0 in a new thread (aries_cloudagent 0.12.8,
    issue_credential/v1_0/manager.py: create_offer).
    """
    if not format_of(message).is_first or message.thread_id != message.id:
        return None
    # A wallet hosted here answers in the thread of the proposal.
    if connection.is_hosted:
        return None
    proposed = Credential.objects.filter(
        connection=connection,
        role=Role.HOLDER,
        state=State.PROPOSED,
        wire_version=Connection.Version.FIRST,
    )
    for credential in proposed.order_by("pk"):
        proposal: Proposal | None = credential.unsealed_proposal()
        if proposal_messages.matches_offer(proposal or {}, offer, values):
            # The one object of this row in this transaction.
            return Credential.find_on_connection(connection, credential.thread_id)
    return None


@transactions.atomic()
def offer_proposed(
    credential: Credential,
    definition: CredentialDefinition | None = None,
    values: dict[str, str] | None = None,
    automatic_issuance: bool = False,
) -> None:
    """Issuer: answer a proposal with an offer, in the same thread.

    Without arguments, offer what was proposed. Values that are neither given nor
    proposed are those of the last offer, if there was one. The connection is locked,
    and the offer is enqueued in the same transaction. 400 `definition_unclear` and the
    errors of check_offer(), 409 `wrong_state`, `connection_gone`.
    """
    credential.lock_to_act()
    if credential.state != State.PROPOSED:
        raise WrongState(credential, [State.PROPOSED])
    definition = definition or find_proposed_definition(credential)
    proposal = credential.unsealed_proposal() or {}
    proposed = proposal.get("credentialValues", {})
    # A counter-proposal to an offer without values repeats its preview of empty texts.
    if not values and any(proposed.values()):
        values = proposed
    values = values or credential.unsealed_values()
    definition.check_offer(values, automatic_issuance)
    offer = definition.create_offer()
    credential.answer_proposal(definition, offer, values, automatic_issuance)
    message = messages.build_offer(
        offer,
        definition.schema.attribute_names,
        values or {},
        credential.message_format,
        credential.thread_id,
    )
    credential.send_message(message)


def find_proposed_definition(credential: Credential) -> CredentialDefinition:
    """Issuer: its only definition that matches the proposal.

    If the proposal names none, it is the definition that was offered before. 400
    `definition_unclear` if there is none or more than one.
    """
    named = credential.unsealed_proposal() or {}
    if not proposal_messages.FILTER_MEMBERS.keys() & named.keys():
        named = {"definitionId": credential.definition_id}
    fitting = []
    if any(named.get(name) for name in proposal_messages.FILTER_MEMBERS):
        fitting = list(_fitting_definitions(credential.tenant, named)[:2])
    if len(fitting) != 1:
        count = "more than one" if fitting else "none"
        message = (
            f"The proposal fits {count} of your definitions: give the definitionId."
        )
        raise Invalid("definition_unclear", message, {"definitionId": [message]})
    return fitting[0]


def _fitting_definitions(
    tenant: Tenant, named: Proposal
) -> QuerySet[CredentialDefinition]:
    """The organization's definitions that match everything a proposal names."""
    columns: dict[FilterName, str] = {
        "definitionId": "definition_id",
        "schemaId": "schema__schema_id",
        "schemaName": "schema__name",
        "schemaVersion": "schema__version",
    }
    filters = {column: named[name] for name, column in columns.items() if name in named}
    definitions = CredentialDefinition.active_of(tenant).filter(**filters)
    if not any(str(text).startswith(DID_WEBVH) for text in named.values()):
        definitions = definitions.filter(twin_of="")
    issuer_did = named.get("issuerDid", "").removeprefix("did:sov:")
    if issuer_did.startswith(DID_WEBVH):
        definitions = definitions.filter(definition_id__startswith=f"{issuer_did}/")
    elif issuer_did and issuer_did != Wallet.of_organization(tenant).issuer_did:
        return definitions.none()
    author_did = named.get("schemaIssuerDid", "").removeprefix("did:sov:")
    if author_did:
        # Of Indy, and of did:webvh.
        definitions = definitions.filter(
            Q(schema__schema_id__startswith=f"{author_did}:")
            | Q(schema__schema_id__startswith=f"{author_did}/")
        )
    return definitions
