"""The interface of the ledger adapters, and what they share."""

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple, Protocol

from core.errors import Conflict, Unavailable
from wallets.anoncreds.objects import (
    DefinitionBody,
    RegistryBody,
    SchemaBody,
    StatusListBody,
)


class DidRole(NamedTuple):
    """What a DID may do on its network.

    may_write: publish by itself. may_endorse: sign transactions of DIDs that may not
    write.
    """

    is_registered: bool
    may_write: bool
    may_endorse: bool


class Agreement(NamedTuple):
    """The transaction author agreement (TAA) that is in force.

    digest: SHA-256 of version and text, in hex. mechanisms: the ways to accept it,
    with their texts.
    """

    text: str
    version: str
    digest: str
    mechanisms: dict[str, str]


class DidService(NamedTuple):
    """Where messages to a DID go. endpoint: "" if none is published for the DID.

    verkey: base58 of 32 bytes.
    """

    verkey: str
    endpoint: str
    routing_keys: list[str]


class Ledger(Protocol):
    """The interface of an adapter. Objects are JSON as in the AnonCreds specification.

    On the local network publishing is part of the caller's transaction. A remote
    ledger is written to outside of any transaction, and a write may be repeated until
    it succeeds (see credentials/publications.py).

    Reads return None if the object does not exist. What they return may be cached: the
    caller must not modify it. A remote ledger is only read outside of transactions,
    with 503 `ledger_unavailable`, 409 `ledger_refused`. Inside, what is not stored
    here raises ReadNeeded (see core/work/network_reads.py).
    """

    is_remote: bool
    # How many places a registry has at most; None if the settings decide alone.
    max_places: int | None

    def schema_id_of(self, schema: SchemaBody) -> str:
        """Return the id that publish_schema() gives. Nothing is read."""
        ...

    def publish_did(self, did: str, verkey: str) -> None: ...

    def publish_endpoint(self, did: str, endpoint: str) -> None: ...

    def publish_schema(self, schema: SchemaBody) -> str: ...

    def publish_definition(
        self, definition: DefinitionBody, tag: str | None
    ) -> str: ...

    def publish_registry(self, public: RegistryBody) -> str: ...

    def publish_status_list(self, status_list: StatusListBody) -> None: ...

    def replace_status_list(self, status_list: StatusListBody) -> bool:
        """Publish a list in place of the one of the same time.

        Return False, and change nothing, if somebody may rely on that one.
        """
        ...

    def has_tag(self, issuer_did: str, schema_id: str, tag: str | None) -> bool: ...

    def schema(self, schema_id: str) -> SchemaBody | None:
        """Return `{"issuerId", "name", "version", "attrNames"}`, or None."""
        ...

    def definition(self, definition_id: str) -> DefinitionBody | None:
        """Return a definition as published, or None."""
        ...

    def revocation_registry(self, registry_id: str) -> RegistryBody | None:
        """Return a registry as published, or None."""
        ...

    def status_list(self, registry_id: str, timestamp: int) -> StatusListBody | None:
        """Return the newest list not later than `timestamp` (unix seconds), or None.

        Another list of the same time, with more revocations, may replace it.
        """
        ...

    def final_status_list(
        self, registry_id: str, timestamp: int
    ) -> StatusListBody | None:
        """Like status_list(), but the list is never replaced from now on.

        For everybody who names the list to others, such as a prover: they find it by
        its time.
        """
        ...

    def is_revoked(self, registry_id: str, index: int) -> bool:
        """Return whether the newest list of a registry revokes the index."""
        ...

    def did_role(self, did: str) -> DidRole: ...

    def did_service(self, did: str) -> DidService | None: ...

    def agreement(self) -> Agreement | None:
        """Return the agreement in force, or None. Outside of transactions."""
        ...


def schema_id_of(schema: SchemaBody) -> str:
    return join_schema_id(schema["issuerId"], schema["name"], schema["version"])


def join_schema_id(did: str, name: str, version: str) -> str:
    return f"{did}:2:{name}:{version}"


def split_schema_id(schema_id: str) -> tuple[str, str, str]:
    """Return the DID, the name and the version in the id of a schema.

    The names of other agents' schemas may contain colons. Three empty texts for an id
    that has another form.
    """
    did, _, rest = schema_id.partition(":2:")
    name, _, version = rest.rpartition(":")
    return (did, name, version) if name else ("", "", "")


def name_in(schema_id: str) -> str:
    """The name in an id such as `WgWx…:2:Degree:1.0`; else the id."""
    return split_schema_id(schema_id)[1] or schema_id


def registry_id_of(public: RegistryBody) -> str:
    """The id of a registry: `DID:4:<definition id>:CL_ACCUM:<tag>`."""
    issuer_did = public["issuerId"]
    return f"{issuer_did}:4:{public['credDefId']}:CL_ACCUM:{public['tag']}"


def default_tags() -> Iterator[str]:
    """Yield default, default-2, default-3, …"""
    yield "default"
    for number in count(2):
        yield f"default-{number}"


def schema_exists(schema_id: str) -> Conflict:
    """Return 409 `schema_exists`: the schema has other attributes there."""
    message = f"The schema {schema_id} has other attributes. Choose another version."
    return Conflict("schema_exists", message)


def tag_taken(tag: str | None) -> Conflict:
    """Return 409 `tag_taken`: the issuer has a definition with this tag."""
    message = f"You have a definition of this schema with the tag {tag}."
    return Conflict("tag_taken", message)


def list_superseded() -> Unavailable:
    return Unavailable(
        "list_superseded", "Another list was published meanwhile. Try again."
    )
