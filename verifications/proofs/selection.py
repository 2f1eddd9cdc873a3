"""The prover's side: find the credentials that fit a request, and select them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from verifications.proofs.policy import Restriction
from verifications.proofs.proof_items import Item
from wallets.anoncreds import INT32, normalise_name
from wallets.anoncreds.objects import CredentialBody, DefinitionBody, SchemaBody


class RevocationStatus(NamedTuple):
    """A credential's index in its registry, and whether it is known to be revoked."""

    registry_id: str
    index: int  # type: ignore[assignment]  # a tuple has a method `index`
    revoked: bool


@dataclass(frozen=True)
class Candidate:
    """A credential of the wallet: its public objects, raw values and the stored form.

    definition, schema: as the ledger has them. revocation: None if it has no index in
    a revocation registry.
    """

    credential_id: str
    definition_id: str
    schema_id: str
    definition: DefinitionBody
    schema: SchemaBody
    values: dict[str, str]
    credential: CredentialBody
    revocation: RevocationStatus | None = None

    @property
    def is_revoked(self) -> bool:
        """Whether it is known to be revoked, by the newest status list."""
        return self.revocation is not None and self.revocation.revoked

    @cached_property
    def names(self) -> dict[str, str]:
        """The attributes as the credential writes them, by normalised name."""
        found: dict[str, str] = {}
        for name in self.values:  # the first of two that are compared as one
            found.setdefault(normalise_name(name), name)
        return found

    @cached_property
    def facts(self) -> dict[str, str]:
        """The values that restrictions compare, by their member."""
        return {
            "schemaId": self.schema_id,
            "schemaIssuerDid": self.schema["issuerId"],
            "schemaName": self.schema["name"],
            "schemaVersion": self.schema["version"],
            "issuerDid": self.definition["issuerId"],
            "credentialDefinitionId": self.definition_id,
        }


class Selection(NamedTuple):
    """The credential that answers a policy item.

    hidden: prove the attribute without showing its value.
    """

    policy_name: str
    credential_id: str
    hidden: bool = False


def find_fitting(
    items: Sequence[Item], candidates: Sequence[Candidate]
) -> list[tuple[Item, list[str]]]:
    """Return each item of a request with the ids of the credentials that satisfy it.

    If non-revocation is requested, credentials known to be revoked are left out.
    """
    return [
        (
            item,
            [one.credential_id for one in candidates if not unfit_code(item, one)],
        )
        for item in items
    ]


def unfit_code(item: Item, candidate: Candidate) -> str | None:
    """The code of why a credential does not satisfy an item, or None if it does.

    The first that applies of "attribute_not_in_schema", "restriction",
    "value_restriction", "not_a_number", "predicate_not_met", "predicate_out_of_range"
    and "revoked_or_invalid". The last one means that non-revocation is requested and
    the credential is known to be revoked.
    """
    if not has_attributes(item, candidate):
        return "attribute_not_in_schema"
    if item.restrictions and met_restriction(item, candidate) is None:
        has_other_value = bool(_restrictions_met_but_values(item, candidate))
        return "value_restriction" if has_other_value else "restriction"
    if code := unprovable_code(item, candidate):
        return code
    if item.non_revoked and candidate.is_revoked:
        return "revoked_or_invalid"
    return None


def auto_select(
    items: Sequence[Item], candidates: Sequence[Candidate]
) -> list[Selection]:
    """Select the first credential that fits for each item. Pass the oldest one first.

    A credential known to be revoked is never selected, even if non-revocation is not
    requested. An item that no credential fits is left out.
    """
    usable = [candidate for candidate in candidates if not candidate.is_revoked]
    return [
        Selection(item.policy_name, credential_ids[0])
        for item, credential_ids in find_fitting(items, usable)
        if credential_ids
    ]


def has_attributes(item: Item, candidate: Candidate) -> bool:
    return candidate.names.keys() >= set(item.labels)


def met_restriction(item: Item, candidate: Candidate) -> Restriction | None:
    """The restriction that the credential meets, one without a value if possible."""
    with_value = None
    for restriction in _restrictions_met_but_values(item, candidate):
        required = restriction.value
        if required is None:
            return restriction
        name = candidate.names.get(required.label)
        if name is not None and candidate.values[name] == required.text:
            with_value = with_value or restriction
    return with_value


def _restrictions_met_but_values(item: Item, candidate: Candidate) -> list[Restriction]:
    """The restrictions that the credential meets, leaving required values aside."""
    return [one for one in item.restrictions if one.matches(candidate.facts)]


def unprovable_code(item: Item, candidate: Candidate) -> str | None:
    """The code of why a predicate cannot be proven, or None.

    The library computes differences in 32 bits.
    """
    if not item.is_predicate:
        return None
    value = comparable_number(candidate, item.labels[0])
    if value is None:
        return "not_a_number"
    differences = differences_of(item, value)
    if min(differences) < 0:
        return "predicate_not_met"
    if max(differences) not in INT32:
        return "predicate_out_of_range"
    return None


def differences_of(item: Item, value: int) -> list[int]:
    """What the library proves to be at least 0 of a number, for each comparison."""
    differences = []
    for predicate_type, threshold in item.comparisons:
        difference = value - threshold
        if predicate_type.startswith("<"):
            difference = -difference
        if predicate_type in (">", "<"):
            difference -= 1
        differences.append(difference)
    return differences


def comparable_number(candidate: Candidate, label: str) -> int | None:
    """The signed number of an attribute, by its normalised name.

    None if it has more than 32 bits.
    """
    encoded = candidate.credential["values"][candidate.names[label]]["encoded"]
    # 11 characters include the sign. A text is signed as a much longer number, which
    # need not be parsed.
    if len(encoded) > 11:
        return None
    number = int(encoded)
    return number if number in INT32 else None
