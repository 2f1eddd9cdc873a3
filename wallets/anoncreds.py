"""AnonCreds (CL signatures): the only module that imports the `anoncreds` library.

Everything that goes in or out is plain JSON: a dict per object, `str` for link secrets, nonces and
ids. What the library refuses is raised as an `AgencyError` without the library's own text, because
that text may quote attribute values.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import NamedTuple

import anoncreds

from agency.errors import AgencyError, Invalid, PeerError

INT32 = range(-(2**31), 2**31)

_REFUSALS = (anoncreds.AnoncredsError, ValueError, TypeError)
_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,10})")
_LEGACY_ID = re.compile(r"[1-9A-HJ-NP-Za-km-z]{21,22}(:.*)?", re.DOTALL)
_LINK_SECRET_ID = "default"


class Definition(NamedTuple):
    """The three parts of a credential definition; only `public` may leave the wallet."""

    public: dict
    private: dict
    key_proof: dict


class Entry(NamedTuple):
    """What one sub-proof shows of one credential.

    attributes: referent -> whether the value is revealed; predicates: referents.
    """

    credential: dict
    attributes: Mapping[str, bool]
    predicates: Sequence[str]


def create_link_secret() -> str:
    """A new link secret, a decimal number. Whoever has it can use all credentials bound to it."""
    return anoncreds.create_link_secret()


def generate_nonce() -> str:
    """80 random bits in decimal, without leading zeros (RFC 0037 proof requests and offers)."""
    return anoncreds.generate_nonce()


def create_definition(
    schema_id: str, schema: dict, issuer_id: str, tag: str, support_revocation: bool
) -> Definition:
    """New keys for a schema {"issuerId", "name", "version", "attrNames"}: 1.5 to 15 s of one core.

    Raises Invalid("invalid_definition").
    """
    with _refused_as(Invalid, "invalid_definition", "The schema cannot be used for a definition."):
        parts = anoncreds.CredentialDefinition.create(
            schema_id, schema, issuer_id, tag, "CL", support_revocation=support_revocation
        )
        return Definition(*(part.to_dict() for part in parts))


def create_offer(schema_id: str, definition_id: str, key_proof: dict) -> dict:
    """The offer {"schema_id", "cred_def_id", "nonce", "key_correctness_proof"}; keep it as sent.

    Raises Invalid("invalid_offer").
    """
    with _refused_as(Invalid, "invalid_offer", "The definition cannot be offered."):
        proof = anoncreds.KeyCorrectnessProof.load(key_proof)
        return anoncreds.CredentialOffer.create(schema_id, definition_id, proof).to_dict()


def create_request(
    offer: dict, definition: dict, link_secret: str, prover_did: str
) -> tuple[dict, dict]:
    """The holder's request and the metadata that `process_credential` needs.

    `prover_did` is any DID-like word: it blinds, and names nobody. With qualified identifiers it
    goes as "entropy", the only one of the two that the library then takes.
    Raises PeerError("offer_refused") if the offer does not fit the definition.
    """
    legacy = _LEGACY_ID.fullmatch(str(offer.get("cred_def_id")))
    entropy, did = (None, prover_did) if legacy else (prover_did, None)
    with _refused_as(PeerError, "offer_refused", "The credential offer is not valid."):
        request, metadata = anoncreds.CredentialRequest.create(
            entropy,
            did,
            anoncreds.CredentialDefinition.load(definition),
            link_secret,
            _LINK_SECRET_ID,
            anoncreds.CredentialOffer.load(offer),
        )
        return request.to_dict(), metadata.to_dict()


def create_credential(
    definition: dict, private: dict, offer: dict, request: dict, values: Mapping[str, str]
) -> dict:
    """The signed credential for a request that answers `offer`; `rev_reg_id` is null.

    values: every attribute of the schema, in its spelling, as raw text.
    Raises Invalid("invalid_values") for text that is not Unicode or that a C string would cut,
    PeerError("request_refused") if the request does not answer the offer.
    """
    encoded = _encode_all(values)
    with _refused_as(PeerError, "request_refused", "The credential request is not valid."):
        return anoncreds.Credential.create(
            anoncreds.CredentialDefinition.load(definition),
            anoncreds.CredentialDefinitionPrivate.load(private),
            anoncreds.CredentialOffer.load(offer),
            anoncreds.CredentialRequest.load(request),
            values,
            encoded,
        ).to_dict()


def process_credential(
    credential: dict, metadata: dict, link_secret: str, definition: dict
) -> dict:
    """The received credential, checked and bound to the link secret, as the holder stores it.

    Raises PeerError("credential_refused") if its signature or its names do not fit.
    """
    with _refused_as(PeerError, "credential_refused", "The credential is not valid."):
        loaded = anoncreds.Credential.load(credential)
        return loaded.process(
            anoncreds.CredentialRequestMetadata.load(metadata),
            link_secret,
            anoncreds.CredentialDefinition.load(definition),
        ).to_dict()


def create_presentation(
    request: dict,
    entries: Sequence[Entry],
    self_attested: Mapping[str, str],
    link_secret: str,
    schemas: Mapping[str, dict],
    definitions: Mapping[str, dict],
) -> dict:
    """A presentation that answers every referent of `request` from `entries` or `self_attested`.

    Each entry loads its credential for itself and becomes one sub-proof, so one credential may
    stand in several entries. Raises PeerError("presentation_refused") if a referent is not
    answered, a predicate does not hold or a restriction is not met.
    """
    message = "The proof request cannot be answered with these credentials."
    with _refused_as(PeerError, "presentation_refused", message):
        return anoncreds.Presentation.create(
            anoncreds.PresentationRequest.load(request),
            _present(entries),
            self_attested,
            link_secret,
            schemas,
            definitions,
        ).to_dict()


def verify_presentation(
    presentation: dict,
    request: dict,
    schemas: Mapping[str, dict],
    definitions: Mapping[str, dict],
) -> bool:
    """Whether the library accepts the proofs: necessary, and by itself not sufficient.

    It proves what the presentation claims, not what was asked: see verifications/checks.py.
    """
    try:
        loaded = anoncreds.Presentation.load(presentation)
        return loaded.verify(anoncreds.PresentationRequest.load(request), schemas, definitions)
    except _REFUSALS:
        return False


def encode(raw: str) -> str:
    """The number that is signed for a raw value (RFC 0036 "encoding claims").

    ASCII digits with an optional sign, within int32: that integer. Else SHA-256 of the UTF-8 text.
    """
    number = _INTEGER.fullmatch(raw)
    if number and (value := int("".join(number.groups()))) in INT32:
        return str(value)
    return str(int.from_bytes(sha256(raw.encode()).digest(), "big"))


def is_encoding_of(raw: str, encoded: str) -> bool:
    """Whether an issuer may have signed `encoded` for `raw`.

    Issuers written in Python encode whatever their `int()` reads (" 7", "1_000", other digits).
    """
    try:
        return encoded == encode(raw) or encoded == _python_integer(raw)
    except ValueError:
        return False


def common_view(name: str) -> str:
    """The form in which the library compares attribute names: lower case, no U+0020."""
    return name.replace(" ", "").lower()


def _encode_all(values: Mapping[str, str]) -> dict[str, str]:
    with _refused_as(Invalid, "invalid_values", "A name or a value cannot be written as text."):
        if any("\0" in text for pair in values.items() for text in pair):
            raise ValueError("NUL ends a C string")
        return {name: encode(raw) for name, raw in values.items()}


def _python_integer(raw: str) -> str | None:
    value = int(raw)
    return str(value) if value in INT32 else None


def _present(entries: Sequence[Entry]) -> anoncreds.PresentCredentials:
    present = anoncreds.PresentCredentials()
    for entry in entries:
        credential = anoncreds.Credential.load(entry.credential)
        for referent, revealed in entry.attributes.items():
            present.add_attributes(credential, referent, reveal=revealed)
        present.add_predicates(credential, *entry.predicates)
    return present


@contextmanager
def _refused_as(kind: type[AgencyError], code: str, message: str) -> Iterator[None]:
    try:
        yield
    except _REFUSALS:
        raise kind(code, message) from None
