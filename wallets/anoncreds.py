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

from agency.core.errors import AgencyError, Invalid, PeerError, Unavailable

INT32 = range(-(2**31), 2**31)

_REFUSALS = (anoncreds.AnoncredsError, ValueError, TypeError)
_INTEGER = re.compile(r"[+-]?[0-9]{1,80}")
_LEGACY_ID = re.compile(r"[1-9A-HJ-NP-Za-km-z]{21,22}(:.*)?", re.DOTALL)
_LINK_SECRET_ID = "default"


class Definition(NamedTuple):
    """The three parts of a credential definition; only `public` may leave the wallet."""

    public: dict
    private: dict
    key_proof: dict


class Registry(NamedTuple):
    """A revocation registry; only `public` and the tails file may leave the wallet.

    public: {"issuerId", "revocDefType", "credDefId", "tag", "value": {"publicKeys", "maxCredNum",
    "tailsLocation", "tailsHash"}}. Its tailsLocation names the file at `tails_path`: put the URL
    there before it is published; nothing is computed from it.
    """

    public: dict
    private: dict
    tails_path: str


class RevocationInfo(NamedTuple):
    """Where a credential gets its place: index is one of 1 to maxCredNum - 1, used only once.

    The status list names the registry; any list of it will do on which the index is not revoked.
    """

    registry_public: dict
    registry_private: dict
    status_list: dict
    index: int  # type: ignore[assignment]


class Entry(NamedTuple):
    """What one sub-proof shows of one credential.

    attributes: referent -> whether the value is revealed; predicates: referents.
    timestamp, revocation_state: of the status list that shows it is not revoked; both or neither.
    """

    credential: dict
    attributes: Mapping[str, bool]
    predicates: Sequence[str]
    timestamp: int | None = None
    revocation_state: dict | None = None


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
    with _refused_as(
        Invalid, "invalid_definition", "The schema cannot be used for a definition."
    ):
        parts = anoncreds.CredentialDefinition.create(
            schema_id,
            schema,
            issuer_id,
            tag,
            "CL",
            support_revocation=support_revocation,
        )
        return Definition(*(part.to_dict() for part in parts))


def create_registry(
    definition_id: str,
    definition_public: dict,
    issuer_id: str,
    tag: str,
    size: int,
    tails_directory: str,
) -> Registry:
    """A new registry for size - 1 credentials, its tails file written into an existing directory.

    The file is named by its hash (base58 of SHA-256), has (2 * size + 1) * 128 + 2 bytes and costs
    about 1.2 ms for each place. Raises Invalid("invalid_registry") if the definition does not
    support revocation or the size is below 2, Unavailable("tails_unavailable") if the file cannot
    be written.
    """
    if size < 2 or not definition_public["value"].get("revocation"):
        raise Invalid("invalid_registry", "The definition cannot have such a registry.")
    with _refused_as(
        Unavailable, "tails_unavailable", "The tails file cannot be written."
    ):
        public, private = anoncreds.RevocationRegistryDefinition.create(
            definition_id,
            anoncreds.CredentialDefinition.load(definition_public),
            issuer_id,
            tag,
            "CL_ACCUM",
            size,
            tails_dir_path=tails_directory,
        )
        return Registry(public.to_dict(), private.to_dict(), public.tails_location)


def create_status_list(
    definition_public: dict,
    registry_id: str,
    registry_public: dict,
    registry_private: dict,
    issuer_id: str,
    timestamp: int,
) -> dict:
    """The first list of a registry, nothing revoked; timestamp in unix seconds.

    {"revRegDefId", "issuerId", "revocationList": [0 or 1, …], "currentAccumulator", "timestamp"}.
    Raises Invalid("invalid_status_list").
    """
    with _refused_as(
        Invalid, "invalid_status_list", "The registry cannot have a list."
    ):
        return anoncreds.RevocationStatusList.create(
            anoncreds.CredentialDefinition.load(definition_public),
            registry_id,
            anoncreds.RevocationRegistryDefinition.load(registry_public),
            anoncreds.RevocationRegistryDefinitionPrivate.load(registry_private),
            issuer_id,
            timestamp=timestamp,
        ).to_dict()


def update_status_list(
    definition_public: dict,
    registry_public: dict,
    registry_private: dict,
    status_list: dict,
    revoked: Sequence[int],
    timestamp: int,
) -> dict:
    """The next list, with these indices revoked too; without any, the same one at a later time.

    Raises Invalid with the code "unknown_index", "already_revoked" (also for an index given twice)
    or "timestamp_not_later": the library would leave such an index out, or take the time.
    """
    _check_update(status_list, revoked, timestamp)
    with _refused_as(
        Invalid, "invalid_status_list", "The list does not fit the registry."
    ):
        loaded = anoncreds.RevocationStatusList.load(status_list)
        return loaded.update(
            anoncreds.CredentialDefinition.load(definition_public),
            anoncreds.RevocationRegistryDefinition.load(registry_public),
            anoncreds.RevocationRegistryDefinitionPrivate.load(registry_private),
            None,
            revoked,
            timestamp,
        ).to_dict()


def create_offer(schema_id: str, definition_id: str, key_proof: dict) -> dict:
    """The offer {"schema_id", "cred_def_id", "nonce", "key_correctness_proof"}; keep it as sent.

    Raises Invalid("invalid_offer").
    """
    with _refused_as(Invalid, "invalid_offer", "The definition cannot be offered."):
        proof = anoncreds.KeyCorrectnessProof.load(key_proof)
        return anoncreds.CredentialOffer.create(
            schema_id, definition_id, proof
        ).to_dict()


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
    definition: dict,
    private: dict,
    offer: dict,
    request: dict,
    values: Mapping[str, str],
    revocation: RevocationInfo | None = None,
) -> dict:
    """The signed credential for a request that answers `offer`.

    values: every attribute of the schema, in its spelling, as raw text. With `revocation` it has a
    `rev_reg_id` and a place in that registry (`revocation_index`), else `rev_reg_id` is null.
    Raises Invalid("invalid_values") for text that is not Unicode or that a C string would cut,
    Invalid("unknown_index", "already_revoked") for a place that cannot be given,
    PeerError("request_refused") if the request does not answer the offer.
    """
    encoded = _encode_all(values)
    if revocation:
        _check_place(revocation.status_list, revocation.index)
    with _refused_as(
        PeerError, "request_refused", "The credential request is not valid."
    ):
        return anoncreds.Credential.create(
            anoncreds.CredentialDefinition.load(definition),
            anoncreds.CredentialDefinitionPrivate.load(private),
            anoncreds.CredentialOffer.load(offer),
            anoncreds.CredentialRequest.load(request),
            values,
            encoded,
            anoncreds.CredentialRevocationConfig(*revocation) if revocation else None,
        ).to_dict()


def process_credential(
    credential: dict,
    metadata: dict,
    link_secret: str,
    definition: dict,
    registry_public: dict | None = None,
) -> dict:
    """The received credential, checked and bound to the link secret, as the holder stores it.

    registry_public: of the credential's `rev_reg_id`, needed if it has one.
    Raises PeerError("credential_refused") if its signature, its names or its place do not fit.
    """
    with _refused_as(PeerError, "credential_refused", "The credential is not valid."):
        if credential.get("rev_reg_id") and registry_public is None:
            raise ValueError("a registry is named and not known")
        loaded = anoncreds.Credential.load(credential)
        return loaded.process(
            anoncreds.CredentialRequestMetadata.load(metadata),
            link_secret,
            anoncreds.CredentialDefinition.load(definition),
            registry_public,
        ).to_dict()


def revocation_index(credential: dict) -> int | None:
    """The credential's place in its registry, as the issuer signed it; None if it has none."""
    return (credential["signature"].get("r_credential") or {}).get("i")


def create_revocation_state(
    credential: dict, registry_public: dict, status_list: dict, tails_path: str
) -> dict:
    """What its holder needs to show that a credential is not revoked on this list.

    5 ms for a registry of 1,000 and 45 ms for one of 8,192. For a credential that is revoked there
    it is made too, and what is proven with it does not verify.
    Raises Invalid("not_revocable"), Unavailable("tails_unavailable") if the file cannot be read.
    """
    index = revocation_index(credential)
    if index is None:
        raise Invalid("not_revocable", "The credential has no place in a registry.")
    with _refused_as(
        Unavailable, "tails_unavailable", "The tails file cannot be read."
    ):
        return anoncreds.CredentialRevocationState.create(
            anoncreds.RevocationRegistryDefinition.load(registry_public),
            anoncreds.RevocationStatusList.load(status_list),
            index,
            tails_path,
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
    registries: Mapping[str, dict] | None = None,
    status_lists: Sequence[dict] | None = None,
) -> bool:
    """Whether the library accepts the proofs: necessary, and by itself not sufficient.

    It proves what the presentation claims, not what was asked: see verifications/proofs/checks.py.
    A proof of non-revocation is looked at only if the presentation names registry and timestamp;
    status_lists needs the list of that registry with exactly that timestamp.
    """
    try:
        loaded = anoncreds.Presentation.load(presentation)
        asked = anoncreds.PresentationRequest.load(request)
        return loaded.verify(asked, schemas, definitions, registries, status_lists)
    except _REFUSALS:
        return False


def encode(raw: str) -> str:
    """The number that is signed for a raw value (RFC 0036 "encoding claims").

    At most 80 ASCII digits with an optional sign, within int32: that integer. Else SHA-256 of the
    UTF-8 text.
    """
    value = integer(raw)
    if value is not None:
        return str(value)
    return str(int.from_bytes(sha256(raw.encode()).digest(), "big"))


def integer(raw: str) -> int | None:
    """The integer that a raw value is signed as, None for a text."""
    if _INTEGER.fullmatch(raw) and int(raw) in INT32:
        return int(raw)
    return None


def is_encoding_of(raw: str, encoded: str) -> bool:
    """Whether `encoded` is the number of `raw`.

    Of an integer only the number is signed, so its text is the holder's choice: issuers written in
    Python read "7_0" and " 70" as 70 too. No such text passes, only leading zeros and a sign.
    """
    try:
        return encoded == encode(raw)
    except ValueError:
        return False


def common_view(name: str) -> str:
    """The form in which the library compares attribute names: lower case, no U+0020."""
    return name.replace(" ", "").lower()


def _encode_all(values: Mapping[str, str]) -> dict[str, str]:
    with _refused_as(
        Invalid, "invalid_values", "A name or a value cannot be written as text."
    ):
        if any("\0" in text for pair in values.items() for text in pair):
            raise ValueError("NUL ends a C string")
        return {name: encode(raw) for name, raw in values.items()}


def _present(entries: Sequence[Entry]) -> anoncreds.PresentCredentials:
    present = anoncreds.PresentCredentials()
    for entry in entries:
        credential = anoncreds.Credential.load(entry.credential)
        state = entry.revocation_state
        if state is not None:
            state = anoncreds.CredentialRevocationState.load(state)
        when = {"timestamp": entry.timestamp, "rev_state": state}
        for referent, revealed in entry.attributes.items():
            present.add_attributes(credential, referent, reveal=revealed, **when)
        present.add_predicates(credential, *entry.predicates, **when)
    return present


def _check_update(status_list: dict, revoked: Sequence[int], timestamp: int) -> None:
    if timestamp <= status_list["timestamp"]:
        message = "A registry's list must be later than the one before."
        raise Invalid("timestamp_not_later", message)
    for index in revoked:
        _check_place(status_list, index)
    if len(set(revoked)) < len(revoked):
        raise Invalid("already_revoked", "An index is given twice.")


def _check_place(status_list: dict, index: int) -> None:
    """The library takes index 0 in updates, leaves out unknown ones, issues on revoked ones."""
    if not 0 < index < len(status_list["revocationList"]):
        raise Invalid("unknown_index", f"The registry has no place {index}.")
    if status_list["revocationList"][index]:
        raise Invalid("already_revoked", f"Place {index} of the registry is revoked.")


@contextmanager
def _refused_as(kind: type[AgencyError], code: str, message: str) -> Iterator[None]:
    try:
        yield
    except _REFUSALS:
        raise kind(code, message) from None
