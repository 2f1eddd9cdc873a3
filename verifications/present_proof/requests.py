"""Proof requests of a tenant's policies."""

import time
from typing import Any

from django.utils.functional import SimpleLazyObject

from connections.models import Connection
from credentials.ledgers.reads import LedgerReads
from credentials.models import CredentialDefinition
from verifications.models import Verification
from verifications.proofs.ledger_reader import LedgerReader
from verifications.proofs.policy import IntegerAttributes, Policy
from verifications.proofs.request_building import (
    build_request,
    definitions_of_predicates,
)
from wallets import anoncreds


def build_request_now(policy: Policy, tenant_id: Any) -> dict[str, Any]:
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


def declared_integers(policy: Policy, tenant_id: Any) -> IntegerAttributes:
    """The integer attributes of the policy's definitions, see `build_request`."""
    definition_ids = definitions_of_predicates(policy)
    if not definition_ids:
        return {}
    return CredentialDefinition.integer_attributes(tenant_id, definition_ids)


def lazy_ledger(row: Connection | Verification) -> LedgerReader:
    """The ledger of the organization's network, opened at the first read.

    Most policies need no read; then the row of the network is not queried either.
    """
    return SimpleLazyObject(lambda: LedgerReads(row.tenant))
