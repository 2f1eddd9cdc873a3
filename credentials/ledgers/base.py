"""What the adapters of all networks offer and share."""

from typing import Any, NamedTuple, Protocol

from agency.core.errors import Conflict


class DidRole(NamedTuple):
    """Of a DID: whether it is on the network, may write there by itself, and may sign for others
    that may not."""

    is_registered: bool
    may_write: bool
    may_endorse: bool


class Agreement(NamedTuple):
    """The transaction author agreement in force. digest: SHA-256 of version and text, in hex.

    mechanisms: the ways to accept it, with their texts.
    """

    text: str
    version: str
    digest: str
    mechanisms: dict[str, str]


class Ledger(Protocol):
    """What every adapter offers. Objects are JSON as in the AnonCreds specification.

    Publishing on a network of our own runs inside the caller's transaction. On a remote one it
    runs outside of any, and may be repeated until it is done (see credentials/publishing.py).
    Reading answers None for what is not there. A remote one is read outside of transactions only
    (see agency/core/network_reads.py).
    """

    is_remote: bool

    def publish_did(self, did: str, verkey: str) -> None: ...

    def publish_schema(self, schema: dict[str, Any]) -> str: ...

    def publish_definition(
        self, definition: dict[str, Any], tag: str | None
    ) -> str: ...

    def publish_registry(self, public: dict[str, Any]) -> str: ...

    def publish_status_list(self, status_list: dict[str, Any]) -> None: ...

    def has_tag(self, issuer_did: str, schema_id: str, tag: str | None) -> bool: ...

    def schema(self, schema_id: str) -> dict[str, Any] | None: ...

    def definition(self, definition_id: str) -> dict[str, Any] | None: ...

    def revocation_registry(self, registry_id: str) -> dict[str, Any] | None: ...

    def status_list(
        self, registry_id: str, timestamp: int
    ) -> dict[str, Any] | None: ...

    def is_revoked(self, registry_id: str, index: int) -> bool: ...

    def did_role(self, did: str) -> DidRole: ...

    def agreement(self) -> Agreement | None: ...


def schema_id_of(schema: dict[str, Any]) -> str:
    return f"{schema['issuerId']}:2:{schema['name']}:{schema['version']}"


def schema_exists(schema_id: str) -> Conflict:
    message = f"The schema {schema_id} has other attributes. Choose another version."
    return Conflict("schema_exists", message)


def tag_taken(tag: str | None) -> Conflict:
    return Conflict(
        "tag_taken", f"You have a definition of this schema with the tag {tag}."
    )
