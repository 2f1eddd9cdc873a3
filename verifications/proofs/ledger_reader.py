"""What the rules and the prover read of a ledger."""

from typing import Protocol

from wallets.anoncreds.objects import (
    DefinitionBody,
    RegistryBody,
    SchemaBody,
    StatusListBody,
)


class LedgerReader(Protocol):
    """Returns public objects by id, as the ledger's JSON. None for an unknown id.

    credentials.ledgers has those that are read here, with the errors of its Ledger.
    """

    def schema(self, schema_id: str) -> SchemaBody | None: ...

    def definition(self, definition_id: str) -> DefinitionBody | None: ...

    def revocation_registry(self, registry_id: str) -> RegistryBody | None: ...

    def status_list(self, registry_id: str, timestamp: int) -> StatusListBody | None:
        """Return the newest list of the registry up to `timestamp`, in unix seconds.

        None if there is none.
        """
        ...

    def final_status_list(
        self, registry_id: str, timestamp: int
    ) -> StatusListBody | None:
        """Like status_list(), but no other list of its time will replace it."""
        ...
