"""Whom a proof names: by the attribute that names the person, as definitions say.

As for `recipientName` of the credentials of that definition.
"""

from collections.abc import Iterable, Mapping
from uuid import UUID

from credentials.models import CredentialDefinition
from credentials.models.credential import MAX_RECIPIENT_NAME
from verifications.proofs.policy import PolicyItem
from verifications.proofs.proof_values import Proof
from wallets.anoncreds import normalise_name


def naming_attributes(
    tenant_id: UUID, items: Iterable[Iterable[PolicyItem]]
) -> dict[str, str]:
    """The attributes that name people, by the organization's definitions."""
    asked = {
        one.definition_id
        for of_one in items
        for item in of_one
        for one in item.restrictions
        if one.definition_id
    }
    rows = CredentialDefinition.objects.filter(
        tenant=tenant_id, definition_id__in=asked
    )
    named = rows.exclude(recipient_attribute="")
    return dict(named.values_list("definition_id", "recipient_attribute"))


def named_by(
    items: Iterable[PolicyItem],
    proof: Proof,
    attributes: Mapping[str, str],
) -> str:
    """The first name that a proof shows, where all cards that may answer have it."""
    for item in items:
        labels = {
            normalise_name(attributes.get(one.definition_id or "", ""))
            for one in item.restrictions
        }
        entry = proof.get(item.policy_name)
        if len(labels) != 1 or not entry or not entry.get("revealed"):
            continue
        texts = entry.get("attributes") or {
            entry.get("name", ""): entry.get("value", "")
        }
        [label] = labels
        for name, text in texts.items():
            if label and name and normalise_name(name) == label and text:
                return str(text).strip()[:MAX_RECIPIENT_NAME]
    return ""
