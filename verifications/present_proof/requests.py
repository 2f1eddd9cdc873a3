"""Proof requests of a tenant's policies."""

import time
from uuid import UUID

from django.utils.functional import SimpleLazyObject

from connections.didcomm.dids import DID_WEBVH
from connections.didcomm.formats import ANONCREDS, HLINDY, MessageFormat
from connections.models import Connection
from connections.protocols import discover_features
from core.text.bounded_json import JSON
from credentials.ledgers.reads import LedgerReads
from credentials.models import CredentialDefinition
from verifications.messages import PRESENT_PROOF
from verifications.models import Verification
from verifications.proofs.ledger_reader import LedgerReader
from verifications.proofs.policy import IntegerAttributes, Policy, Twins
from verifications.proofs.request_building import (
    build_request,
    definitions_of_predicates,
)
from wallets import anoncreds


def build_request_now(policy: Policy, tenant_id: UUID) -> dict[str, JSON]:
    """Build the proof request of a policy, with a new nonce.

    Raises Invalid("not_yet_due") if the policy's `validAt` is in the future.
    """
    return build_request(
        policy,
        nonce=anoncreds.generate_nonce(),
        # The real time, also when the transaction runs again.
        non_revoked_at=policy.non_revoked_at(int(time.time())),
        integer_attributes=declared_integers(policy, tenant_id),
    )


def declared_integers(policy: Policy, tenant_id: UUID) -> IntegerAttributes:
    """The integer attributes of the policy's definitions, see `build_request`."""
    definition_ids = definitions_of_predicates(policy)
    if not definition_ids:
        return {}
    return CredentialDefinition.integer_attributes(tenant_id, definition_ids)


def choose_format(
    connection: Connection, policy: Policy, twins: Twins
) -> MessageFormat:
    """The format in which a policy is asked for on a locked connection.

    As discover_features.choose_format(). A definition of a did:webvh that has a twin is
    no reason to refuse: the twin alone is asked for in a format that has no such ids.
    """
    names = policy.stated_texts(without=twins)
    usual = discover_features.choose_format(connection, PRESENT_PROOF, names=names)
    if twins and _takes_webvh(connection, usual, twins):
        return MessageFormat(usual.prefix, "2.0", ANONCREDS)
    return usual


def _takes_webvh(connection: Connection, usual: MessageFormat, twins: Twins) -> bool:
    """Whether a request may name definitions of a did:webvh."""
    if connection.attachment_format == HLINDY:
        return False
    if not discover_features.may_use_second(connection, PRESENT_PROOF):
        return False
    # Who connected by connections/1.0 and tells nothing may have no other version.
    is_unknown = usual.is_first and not connection.connectionless
    if not is_unknown or connection.is_hosted:
        return True
    return any(name.startswith(DID_WEBVH) for name in twins)


def admit_twins(
    twins: Twins, message_format: MessageFormat, *policies: Policy
) -> list[Policy]:
    """The policies with the twins that a request in this format can name."""
    takes_webvh = message_format.format == ANONCREDS and not message_format.is_first
    return [one.admit_twins(twins, takes_webvh) for one in policies]


def lazy_ledger(row: Connection | Verification) -> LedgerReader:
    """The ledger of the organization's network, opened at the first read.

    Most policies need no read; then the row of the network is not queried either.
    """
    return SimpleLazyObject(lambda: LedgerReads(row.tenant))
