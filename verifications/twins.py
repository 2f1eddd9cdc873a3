"""Policies that allow a definition or its twin (`orTwin`).

A twin may be made after the policy, so it is looked up for each request.
"""

from uuid import UUID

from credentials.models import CredentialDefinition
from verifications.proofs.policy import Policy, Twins


def find_twins(policy: Policy, tenant_id: UUID) -> Twins:
    """The twins that a policy allows, by the definitions that it names."""
    definition_ids = policy.definitions_or_twins()
    if not definition_ids:
        return {}
    return CredentialDefinition.twins_of(tenant_id, definition_ids)


def with_twins(policy: Policy, tenant_id: UUID) -> Policy:
    """The policy with the twins that it allows as alternatives."""
    return policy.admit_twins(find_twins(policy, tenant_id))
