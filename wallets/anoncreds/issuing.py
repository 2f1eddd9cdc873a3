"""Issuing, both sides: definitions with keys, offers, requests and credentials."""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypedDict

import anoncreds

from core.errors import Invalid, PeerError
from wallets.anoncreds.objects import (
    CredentialBody,
    DefinitionBody,
    OfferBody,
    Opaque,
    PrimaryKey,
    PrivatePart,
    PublicKeys,
    RegistryBody,
    SchemaBody,
)
from wallets.anoncreds.refusals import REFUSALS
from wallets.anoncreds.revocation import RevocationSlot, require_free_index

LINK_SECRET_ID = "default"
LINK_SECRET_LABEL = "master_secret"  # its name among the attributes, normalised
UNQUALIFIED_ID = re.compile(r"[1-9A-HJ-NP-Za-km-z]{21,22}(:.*)?", re.DOTALL)
INT32 = range(-(2**31), 2**31)
INTEGER = re.compile(r"[+-]?[0-9]{1,80}")
RESIZING = str(Path(__file__).with_name("resizing.py"))
RESIZING_SECONDS = 60  # enough for 125 attributes on a busy machine


class UnusableKey(Exception):
    """A key is not what it should be. Without a text, which could quote it."""


class Definition(NamedTuple):
    """The parts of a credential definition; only `public` may leave the wallet."""

    public: DefinitionBody
    private: PrivatePart
    key_proof: Opaque

    def __repr__(self) -> str:
        return "Definition(...)"  # no secrets in error reports


def resize_definition(
    spare: Definition,
    schema_id: str,
    schema: SchemaBody,
    issuer_id: str,
    tag: str,
    support_revocation: bool,
) -> Definition:
    """Create a definition with the safe primes of `spare`, which may have any size.

    schema: {"issuerId", "name", "version", "attrNames"}. Takes 65 ms (2 attributes) to
    1.5 s (125), in a process of its own. The part for revocation does not depend on the
    attributes, so it is kept, or left out. The caller must use the primes only once.
    Raises UnusableKey if the spare key is damaged, and OSError if the process fails.
    Raises Invalid("invalid_definition") if the key does not pass the check of a wallet:
    other agents publish schemas with names that differ in case only.
    """
    private, old = spare.private["value"], spare.public["value"]
    primes = private["p_key"]
    p, q = int(primes["p"]), int(primes["q"])
    if (2 * p + 1) * (2 * q + 1) != int(old["primary"]["n"]):
        raise UnusableKey
    labels = [LINK_SECRET_LABEL, *map(normalise_name, schema["attrNames"])]
    made = run_resizing({"p": primes["p"], "q": primes["q"], "labels": labels})
    value, r_key = PublicKeys(primary=made["primary"]), None
    if support_revocation:
        value["revocation"] = old["revocation"]
        r_key = private["r_key"]
    definition = Definition(
        public={
            **spare.public,
            "schemaId": schema_id,
            "issuerId": issuer_id,
            "tag": tag,
            "value": value,
        },
        private={"value": {"p_key": private["p_key"], "r_key": r_key}},
        key_proof=made["key_proof"],
    )
    check_key_proof(definition)
    return definition


class ResizedKey(TypedDict):
    primary: PrimaryKey
    key_proof: Opaque


def run_resizing(given: Mapping[str, str | list[str]]) -> ResizedKey:
    """Run resizing.py. Raises ChildProcessError if it fails, as if it is killed.

    TimeoutError after RESIZING_SECONDS.
    """
    ran = None
    with suppress(subprocess.TimeoutExpired):
        # Isolated (-I) and without packages (-S), so it starts fast.
        ran = subprocess.run(
            [sys.executable, "-I", "-S", RESIZING],
            input=json.dumps(given),
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=RESIZING_SECONDS,
        )
    if ran is None:
        raise TimeoutError("the machine is too busy to make a key")
    if ran.returncode:
        raise ChildProcessError(f"resizing.py ended with {ran.returncode}")
    return json.loads(ran.stdout)


def check_key_proof(definition: Definition) -> None:
    """Check the correctness proof of a key, as a wallet does before its request.

    The library computes otherwise than resizing.py, without the primes. Raises
    Invalid("invalid_definition").
    """
    issuer_id, schema_id = definition.public["issuerId"], definition.public["schemaId"]
    definition_id = f"{issuer_id}:3:CL:1:check"
    try:
        anoncreds.CredentialRequest.create(
            "check",
            None,
            anoncreds.CredentialDefinition.load(definition.public),
            anoncreds.create_link_secret(),
            "check",
            create_offer(schema_id, definition_id, definition.key_proof),
        )
    except (Invalid, *REFUSALS):
        pass
    else:
        return
    # Out of the handler, so without what the library says.
    raise Invalid("invalid_definition", "The schema cannot be used for a definition.")


def create_offer(schema_id: str, definition_id: str, key_proof: Opaque) -> OfferBody:
    """Create an offer: {"schema_id", "cred_def_id", "nonce", "key_correctness_proof"}.

    Store it exactly as it was sent: the credential is created from it. Raises
    Invalid("invalid_offer").
    """
    try:
        proof = anoncreds.KeyCorrectnessProof.load(key_proof)
        offer = anoncreds.CredentialOffer.create(schema_id, definition_id, proof)
        return offer.to_dict()
    except REFUSALS:
        raise Invalid("invalid_offer", "The definition cannot be offered.") from None


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
    try:
        request, metadata = anoncreds.CredentialRequest.create(
            None if is_unqualified else prover_did,
            prover_did if is_unqualified else None,
            anoncreds.CredentialDefinition.load(definition),
            link_secret,
            LINK_SECRET_ID,
            anoncreds.CredentialOffer.load(offer),
        )
        return request.to_dict(), metadata.to_dict()
    except REFUSALS:
        raise PeerError("offer_refused", "The credential offer is not valid.") from None


def create_credential(
    definition: DefinitionBody,
    private: PrivatePart,
    offer: OfferBody,
    request: Opaque,
    values: Mapping[str, str],
    revocation: RevocationSlot | None = None,
) -> CredentialBody:
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
    try:
        credential = anoncreds.Credential.create(
            *ours,
            anoncreds.CredentialRequest.load(request),
            values,
            encoded,
            config,
        )
        return credential.to_dict()
    except REFUSALS:
        raise PeerError(
            "request_refused", "The credential request is not valid."
        ) from None


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
    try:
        if credential.get("rev_reg_id") and registry_public is None:
            raise ValueError("the credential names a registry that is not given")
        loaded = anoncreds.Credential.load(credential)
        processed = loaded.process(
            anoncreds.CredentialRequestMetadata.load(metadata),
            link_secret,
            anoncreds.CredentialDefinition.load(definition),
            registry_public,
        )
        return processed.to_dict()
    except REFUSALS:
        raise PeerError("credential_refused", "The credential is not valid.") from None


def encode_values(values: Mapping[str, str]) -> dict[str, str]:
    """Return the encodings of all values. Raises Invalid("invalid_values")."""
    try:
        if any("\0" in text for pair in values.items() for text in pair):
            raise ValueError("NUL ends a C string, so the library would cut it")
        return {name: encode_value(raw) for name, raw in values.items()}
    except REFUSALS:
        raise Invalid(
            "invalid_values", "A name or a value is not valid text."
        ) from None


def encode_value(raw: str) -> str:
    """Return the number that is signed for a raw value (RFC 0036 "encoding claims").

    At most 80 ASCII digits with an optional sign, within int32, are encoded as that
    integer, and any other text as the SHA-256 of its UTF-8 form.
    """
    value = parse_integer(raw)
    if value is not None:
        return str(value)
    return str(int.from_bytes(sha256(raw.encode()).digest(), "big"))


def parse_integer(raw: str) -> int | None:
    """Return the integer that a raw value is signed as, or None for other text."""
    if INTEGER.fullmatch(raw) and int(raw) in INT32:
        return int(raw)
    return None


def is_encoding_of(raw: str, encoded: str) -> bool:
    """Return whether `encoded` is the encoding of `raw`.

    Only the number of an integer is signed, so the holder chooses its text. Issuers
    written in Python parse "7_0" and " 70" as 70 too. Such texts are refused here;
    only leading zeros and a sign are accepted.
    """
    try:
        return encoded == encode_value(raw)
    except ValueError:  # a text that cannot be encoded as UTF-8
        return False


def normalise_name(name: str) -> str:
    """Return an attribute name as the library compares it: lower case, no U+0020."""
    return name.replace(" ", "").lower()
