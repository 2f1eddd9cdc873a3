"""The issuer's side: definitions with keys, offers and signed credentials."""

import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypedDict

import anoncreds

from core.errors import Invalid, PeerError
from wallets.anoncreds.encoding import encode_values, normalise_name
from wallets.anoncreds.objects import (
    CredentialBody,
    DefinitionBody,
    OfferBody,
    Opaque,
    PrimaryKey,
    PrivatePart,
    PublicKeys,
    SchemaBody,
)
from wallets.anoncreds.refusals import REFUSALS, refused_as
from wallets.anoncreds.revocation import RevocationSlot, require_free_index

LINK_SECRET_LABEL = "master_secret"  # its name among the attributes, normalised
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
    message = "The definition cannot be offered."
    with refused_as(Invalid, "invalid_offer", message):
        proof = anoncreds.KeyCorrectnessProof.load(key_proof)
        offer = anoncreds.CredentialOffer.create(schema_id, definition_id, proof)
        return offer.to_dict()


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
