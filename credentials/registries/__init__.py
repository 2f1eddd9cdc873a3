"""Where DIDs, schemas and definitions are published: one adapter per kind of network."""

from typing import Any, Protocol

from credentials.registries.local import LocalRegistry
from tenants.models import Network


class Registry(Protocol):
    """What every adapter offers. Objects are JSON as in the AnonCreds specification.

    Publishing runs inside the caller's transaction; reading answers None for what is not there.
    """

    def publish_did(self, did: str, verkey: str) -> None: ...

    def publish_schema(self, schema: dict[str, Any]) -> str: ...

    def publish_definition(self, definition: dict[str, Any], tag: str | None) -> str: ...

    def publish_registry(self, public: dict[str, Any]) -> str: ...

    def publish_status_list(self, status_list: dict[str, Any]) -> None: ...

    def schema(self, schema_id: str) -> dict[str, Any] | None: ...

    def definition(self, definition_id: str) -> dict[str, Any] | None: ...

    def registry(self, registry_id: str) -> dict[str, Any] | None: ...

    def status_list(self, registry_id: str, timestamp: int) -> dict[str, Any] | None: ...


ADAPTERS = {Network.Kind.LOCAL: LocalRegistry}


def registry_of(network: Network) -> Registry:
    return ADAPTERS[Network.Kind(network.kind)](network)
