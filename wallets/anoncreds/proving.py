"""Presentations: created by the prover, verified by the verifier."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import anoncreds

from core.errors import Invalid, PeerError, Unavailable
from wallets.anoncreds.objects import (
    CredentialBody,
    DefinitionBody,
    Opaque,
    RegistryBody,
    SchemaBody,
    StatusListBody,
)
from wallets.anoncreds.refusals import REFUSALS
from wallets.anoncreds.revocation import revocation_index


class SubProof(NamedTuple):
    """The part of a presentation that is about one credential.

    attributes: whether the value is revealed, by referent. predicates: referents.
    timestamp, revocation_state: of the status list for the proof of non-revocation;
    both or neither.
    """

    credential: CredentialBody
    attributes: Mapping[str, bool]
    predicates: Sequence[str]
    timestamp: int | None = None
    revocation_state: Opaque | None = None


def generate_nonce() -> str:
    """Return 80 random bits in decimal, without leading zeros (RFC 0037)."""
    return anoncreds.generate_nonce()


def create_revocation_state(
    credential: CredentialBody,
    registry_public: RegistryBody,
    status_list: StatusListBody,
    tails_path: str,
) -> Opaque:
    """Return the revocation state for a proof of non-revocation on this status list.

    Takes 5 ms for a registry of size 1,000 and 45 ms for one of 8,192. For a revoked
    credential the state is created too, but a proof with it does not verify. Raises
    Invalid("not_revocable"), Invalid("unknown_registry") if the registry or the list
    cannot be read, and Unavailable("tails_unavailable") if the file cannot.
    """
    index = revocation_index(credential)
    if index is None:
        raise Invalid("not_revocable", "The credential has no index in a registry.")
    try:
        published = (
            anoncreds.RevocationRegistryDefinition.load(registry_public),
            anoncreds.RevocationStatusList.load(status_list),
        )
    except REFUSALS:
        raise Invalid(
            "unknown_registry",
            "The credential's registry, or its list, cannot be read.",
        ) from None
    try:
        state = anoncreds.CredentialRevocationState.create(
            *published, index, tails_path
        )
        return state.to_dict()
    except REFUSALS:
        raise Unavailable(
            "tails_unavailable", "The tails file cannot be read."
        ) from None


def create_presentation(
    request: Opaque,
    sub_proofs: Sequence[SubProof],
    self_attested: Mapping[str, str],
    link_secret: str,
    schemas: Mapping[str, SchemaBody],
    definitions: Mapping[str, DefinitionBody],
) -> Opaque:
    """Create a presentation that answers every referent of `request`.

    One credential may be used in several sub-proofs. Raises
    PeerError("presentation_refused") if a referent is not answered, a predicate does
    not hold or a restriction is not met.
    """
    try:
        presentation = anoncreds.Presentation.create(
            anoncreds.PresentationRequest.load(request),
            load_sub_proofs(sub_proofs),
            self_attested,
            link_secret,
            schemas,
            definitions,
        )
        return presentation.to_dict()
    except REFUSALS:
        raise PeerError(
            "presentation_refused",
            "The proof request cannot be answered with these credentials.",
        ) from None


def load_sub_proofs(sub_proofs: Sequence[SubProof]) -> anoncreds.PresentCredentials:
    present = anoncreds.PresentCredentials()
    for sub_proof in sub_proofs:
        # Load it for each sub-proof: the library creates one sub-proof per object.
        credential = anoncreds.Credential.load(sub_proof.credential)
        state = sub_proof.revocation_state
        if state is not None:
            state = anoncreds.CredentialRevocationState.load(state)
        not_revoked = {"timestamp": sub_proof.timestamp, "rev_state": state}
        for referent, is_revealed in sub_proof.attributes.items():
            present.add_attributes(
                credential, referent, reveal=is_revealed, **not_revoked
            )
        present.add_predicates(credential, *sub_proof.predicates, **not_revoked)
    return present


def verify_presentation(
    presentation: Opaque,
    request: Opaque,
    schemas: Mapping[str, SchemaBody],
    definitions: Mapping[str, DefinitionBody],
    registries: Mapping[str, RegistryBody] | None = None,
    status_lists: Sequence[StatusListBody] | None = None,
) -> bool:
    """Return whether the library accepts the proofs: necessary, but not sufficient.

    It verifies what the presentation claims, not what was requested: the rules in
    verifications/proofs/checks.py run before it. A proof of non-revocation is verified
    only if the presentation names registry and timestamp. `status_lists` must contain
    the list of that registry with exactly that timestamp.
    """
    try:
        loaded = anoncreds.Presentation.load(presentation)
        loaded_request = anoncreds.PresentationRequest.load(request)
        return loaded.verify(
            loaded_request, schemas, definitions, registries, status_lists
        )
    except REFUSALS:
        return False
