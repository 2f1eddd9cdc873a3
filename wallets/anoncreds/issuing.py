"""The issuer's side: definitions with keys, offers and signed credentials."""

from collections.abc import Mapping
from typing import NamedTuple

import anoncreds

from agency.core.errors import Invalid, PeerError
from agency.core.prepared_results import preparable
from wallets.anoncreds.encoding import encode_values
from wallets.anoncreds.refusals import refused_as
from wallets.anoncreds.revocation import RevocationSlot, require_free_index


class Definition(NamedTuple):
    """The parts of a credential definition; only `public` may leave the wallet."""

    public: dict
    private: dict
    key_proof: dict


def create_definition(
    schema_id: str, schema: dict, issuer_id: str, tag: str, support_revocation: bool
) -> Definition:
    """Create a definition with new keys. Takes 1.5 to 15 seconds of one processor.

    schema: {"issuerId", "name", "version", "attrNames"}.
    Raises Invalid("invalid_definition").
    """
    message = "The schema cannot be used for a definition."
    with refused_as(Invalid, "invalid_definition", message):
        public, private, key_proof = anoncreds.CredentialDefinition.create(
            schema_id,
            schema,
            issuer_id,
            tag,
            "CL",
            support_revocation=support_revocation,
        )
        return Definition(public.to_dict(), private.to_dict(), key_proof.to_dict())


def create_offer(schema_id: str, definition_id: str, key_proof: dict) -> dict:
    """Create an offer: {"schema_id", "cred_def_id", "nonce", "key_correctness_proof"}.

    Store it exactly as it was sent: the credential is created from it. Raises
    Invalid("invalid_offer").
    """
    message = "The definition cannot be offered."
    with refused_as(Invalid, "invalid_offer", message):
        proof = anoncreds.KeyCorrectnessProof.load(key_proof)
        offer = anoncreds.CredentialOffer.create(schema_id, definition_id, proof)
        return offer.to_dict()


# preparable: a result that was computed before the locks of a transaction is reused.
@preparable
def create_credential(
    definition: dict,
    private: dict,
    offer: dict,
    request: dict,
    values: Mapping[str, str],
    revocation: RevocationSlot | None = None,
) -> dict:
    """Create a signed credential for a request that answers `offer`.

    values: the raw text of every attribute, by its name as spelled in the schema.
    revocation: sets `rev_reg_id` and an index in that registry; without it
    `rev_reg_id` is null. Raises Invalid("invalid_values") for a text that is not
    Unicode or contains NUL, Invalid "unknown_index" or "already_revoked" for an index
    that is not free, and PeerError("request_refused") if the request does not answer
    the offer. That too if a value is missing or has a name that the schema does not
    have, which the library does not tell apart: callers check the values before. What
    is wrong with our own keys or offer raises the library's error.
    """
    encoded = encode_values(values)
    config = None
    if revocation:
        require_free_index(revocation.status_list, revocation.index)
        # The fields of the slot are its arguments, in this order.
        config = anoncreds.CredentialRevocationConfig(*revocation)
    # Ours, so the peer is not to blame if one of them cannot be read.
    ours = (
        anoncreds.CredentialDefinition.load(definition),
        anoncreds.CredentialDefinitionPrivate.load(private),
        anoncreds.CredentialOffer.load(offer),
    )
    message = "The credential request is not valid."
    with refused_as(PeerError, "request_refused", message):
        credential = anoncreds.Credential.create(
            *ours,
            anoncreds.CredentialRequest.load(request),
            values,
            encoded,
            config,
        )
        return credential.to_dict()
