"""The holder's side of issuing: link secrets, requests and received credentials."""

import re

import anoncreds

from core.errors import PeerError
from wallets.anoncreds.objects import (
    CredentialBody,
    DefinitionBody,
    OfferBody,
    Opaque,
    RegistryBody,
)
from wallets.anoncreds.refusals import refused_as

LINK_SECRET_ID = "default"
UNQUALIFIED_ID = re.compile(r"[1-9A-HJ-NP-Za-km-z]{21,22}(:.*)?", re.DOTALL)


def create_link_secret() -> str:
    """Create a link secret, a decimal number.

    Anybody who has it can use all credentials that are bound to it.
    """
    return anoncreds.create_link_secret()


def create_request(
    offer: OfferBody, definition: DefinitionBody, link_secret: str, prover_did: str
) -> tuple[Opaque, Opaque]:
    """Create the holder's request, and the metadata that `process_credential` needs.

    prover_did: any text in the form of a DID. It is a source of randomness and
    identifies nobody. Raises PeerError("offer_refused") if the offer does not match
    the definition.
    """
    # With qualified identifiers, the library accepts it only as "entropy".
    definition_id = str(offer.get("cred_def_id"))
    is_unqualified = UNQUALIFIED_ID.fullmatch(definition_id) is not None
    message = "The credential offer is not valid."
    with refused_as(PeerError, "offer_refused", message):
        request, metadata = anoncreds.CredentialRequest.create(
            None if is_unqualified else prover_did,
            prover_did if is_unqualified else None,
            anoncreds.CredentialDefinition.load(definition),
            link_secret,
            LINK_SECRET_ID,
            anoncreds.CredentialOffer.load(offer),
        )
        return request.to_dict(), metadata.to_dict()


def process_credential(
    credential: Opaque,
    metadata: Opaque,
    link_secret: str,
    definition: DefinitionBody,
    registry_public: RegistryBody | None = None,
) -> CredentialBody:
    """Check a credential and bind it to the link secret. Return it for storage.

    metadata: from create_request(), of the request that it answers.
    registry_public: the registry of the credential's `rev_reg_id`, required if it has
    one. Raises PeerError("credential_refused") if its signature, names or index do not
    match.
    """
    message = "The credential is not valid."
    with refused_as(PeerError, "credential_refused", message):
        if credential.get("rev_reg_id") and registry_public is None:
            # Refused as below: refused_as() turns it into PeerError.
            raise ValueError("the credential names a registry that is not given")
        loaded = anoncreds.Credential.load(credential)
        processed = loaded.process(
            anoncreds.CredentialRequestMetadata.load(metadata),
            link_secret,
            anoncreds.CredentialDefinition.load(definition),
            registry_public,
        )
        return processed.to_dict()
