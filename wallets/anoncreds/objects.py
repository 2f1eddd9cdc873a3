"""The objects of AnonCreds as JSON, in the members that are read here.

What the library alone reads has no members here: it is an Opaque.
"""

from typing import NotRequired, TypedDict

from core.text.bounded_json import Members

# Of the library: keys, requests, metadata, presentations, states.
Opaque = Members


class SchemaBody(TypedDict):
    issuerId: str
    name: str
    version: str
    attrNames: list[str]


# The numbers of a public key: decimal texts, of which `r` has one for each attribute.
class PrimaryKey(TypedDict):
    n: str
    s: str
    r: dict[str, str]
    rctxt: str
    z: str


class PublicKeys(TypedDict):
    primary: PrimaryKey
    revocation: NotRequired[Opaque]


class DefinitionBody(TypedDict):
    """The public part of a credential definition."""

    issuerId: str
    schemaId: str
    type: str
    tag: str
    value: PublicKeys


class SafePrimes(TypedDict):
    p: str
    q: str


class PrivateKeys(TypedDict):
    p_key: SafePrimes
    r_key: Opaque | None


class PrivatePart(TypedDict):
    """The private part of a credential definition."""

    value: PrivateKeys


class KeyParts(TypedDict):
    """What the generator of keys makes: all parts of a credential definition."""

    public: DefinitionBody
    private: PrivatePart
    key_proof: Opaque


class RegistryValue(TypedDict):
    """issuanceType: of a registry of Indy."""

    publicKeys: Opaque
    maxCredNum: int
    tailsLocation: str
    tailsHash: str
    issuanceType: NotRequired[str]


class RegistryBody(TypedDict):
    """The public part of a revocation registry."""

    issuerId: str
    revocDefType: str
    credDefId: str
    tag: str
    value: RegistryValue


class StatusListBody(TypedDict):
    """revocationList: 1 for each index that is revoked, else 0. timestamp: Unix seconds."""

    revRegDefId: str
    issuerId: str
    revocationList: list[int]
    currentAccumulator: str
    timestamp: int


class OfferBody(TypedDict):
    schema_id: str
    cred_def_id: str
    nonce: str
    key_correctness_proof: Opaque


class SignedValue(TypedDict):
    raw: str
    encoded: str


class RevocationPart(TypedDict):
    i: int


class Signature(TypedDict):
    r_credential: NotRequired[RevocationPart | None]


class CredentialBody(TypedDict):
    """A signed credential, before or after it was bound to a link secret."""

    schema_id: str
    cred_def_id: str
    rev_reg_id: NotRequired[str | None]
    values: dict[str, SignedValue]
    signature: Signature
