"""The local network: rows of our database in the form of an Indy ledger.

Anyone can read them. Ids are those of Indy: `DID:2:name:version` for a schema,
`DID:3:CL:<the schema's sequence number>:<tag>` for a definition. Every write gets the
network's next sequence number, and the writes of one issuer wait for each other.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from core.database.base import fetch_rows
from core.errors import Conflict
from core.work import network_reads
from credentials.ledgers.base import (
    DidRole,
    DidService,
    default_tags,
    registry_id_of,
    schema_exists,
    schema_id_of,
    tag_taken,
)
from credentials.ledgers.published import (
    FAR_FUTURE,
    DidEndpoint,
    PublishedObject,
    StatusList,
)
from tenants.models import Network
from wallets.anoncreds.objects import (
    DefinitionBody,
    RegistryBody,
    SchemaBody,
    StatusListBody,
)

# Version 0.1.0 and an import lock the whole network.
LOCK_SQL = """
SELECT pg_advisory_xact_lock(hashtextextended(%s, 0)) FROM (
    SELECT FROM tenants_network WHERE id = %s FOR SHARE
) AS network
"""


class LocalLedger:
    is_remote = False
    max_places: int | None = None

    def __init__(self, network: Network) -> None:
        self.network = network

    def schema_id_of(self, schema: SchemaBody) -> str:
        return schema_id_of(schema)

    def publish_did(self, did: str, verkey: str) -> None:
        """Publish a DID. 409 `did_taken` if it is on the network already."""
        kind = PublishedObject.Kind.DID
        self._lock(did)
        if read_body(self.network.pk, kind, did):
            raise Conflict("did_taken", f"The DID {did} is on the network already.")
        self._write_object(kind, did, {"did": did, "verkey": verkey})

    def publish_endpoint(self, did: str, endpoint: str) -> None:
        """Set the endpoint of a DID."""
        DidEndpoint.objects.update_or_create(
            network=self.network, did=did, defaults={"endpoint": endpoint}
        )

    def publish_schema(self, schema: SchemaBody) -> str:
        """Publish a schema, unless the same one exists. Return its id.

        409 `schema_exists` if it exists with other attributes.
        """
        schema_id = schema_id_of(schema)
        self._lock(schema["issuerId"])
        known = read_body(self.network.pk, PublishedObject.Kind.SCHEMA, schema_id)
        if known and sorted(known["attrNames"]) != sorted(schema["attrNames"]):
            raise schema_exists(schema_id)
        if not known:
            self._write_object(PublishedObject.Kind.SCHEMA, schema_id, schema)
        return schema_id

    def publish_definition(self, definition: DefinitionBody, tag: str | None) -> str:
        """Publish a definition and return its id. 409 `tag_taken`.

        Without a tag, it gets the first of the default tags that is free.
        """
        self._lock(definition["issuerId"])
        prefix, taken = self._taken_tags(definition["issuerId"], definition["schemaId"])
        if tag in taken:
            raise tag_taken(tag)
        definition["tag"] = tag or next(
            one for one in default_tags() if one not in taken
        )
        definition_id = prefix + definition["tag"]
        self._write_object(PublishedObject.Kind.DEFINITION, definition_id, definition)
        return definition_id

    def publish_registry(self, public: RegistryBody) -> str:
        """Publish a registry and return its id."""
        registry_id = registry_id_of(public)
        self._write_object(PublishedObject.Kind.REGISTRY, registry_id, public)
        return registry_id

    def publish_status_list(self, status_list: StatusListBody) -> None:
        StatusList.objects.create(
            network=self.network,
            registry_id=status_list["revRegDefId"],
            timestamp=status_list["timestamp"],
            body=status_list,
        )

    def replace_status_list(self, status_list: StatusListBody) -> bool:
        return StatusList.replace(self.network, status_list)

    def has_tag(self, issuer_did: str, schema_id: str, tag: str | None) -> bool:
        """Whether the tag is taken now. publish_definition() checks it again."""
        if self.schema(schema_id) is None:
            return False
        _, taken = self._taken_tags(issuer_did, schema_id)
        return tag in taken

    def schema(self, schema_id: str) -> SchemaBody | None:
        """Return a schema, or None. Cached: the caller must not modify it."""
        return self._find_body(PublishedObject.Kind.SCHEMA, schema_id)

    def definition(self, definition_id: str) -> DefinitionBody | None:
        """Return a definition, or None. Cached: the caller must not modify it."""
        return self._find_body(PublishedObject.Kind.DEFINITION, definition_id)

    def revocation_registry(self, registry_id: str) -> RegistryBody | None:
        """Return a registry, or None. Cached: the caller must not modify it."""
        return self._find_body(PublishedObject.Kind.REGISTRY, registry_id)

    def status_list(self, registry_id: str, timestamp: int) -> StatusListBody | None:
        """Return the newest list not later than `timestamp` (unix seconds), or None.

        It may still be replaced: see final_status_list().
        """
        if "\0" in registry_id:
            return None  # PostgreSQL cannot store this character
        return StatusList.newest(self.network, registry_id, timestamp)

    def final_status_list(
        self, registry_id: str, timestamp: int
    ) -> StatusListBody | None:
        newest = StatusList.find_newest(self.network, registry_id, timestamp)
        if newest is None:
            return None
        if newest.is_final:
            return newest.read()
        # Outside of a transaction, like a read of a remote ledger.
        return network_reads.read_outside_transaction(
            ("final list", newest.pk), newest.final_body
        )

    def is_revoked(self, registry_id: str, index: int) -> bool:
        """Return whether the newest list shows the index as revoked.

        That of a publisher whose clock is ahead counts too: a holder is told once.
        """
        newest = self.status_list(registry_id, FAR_FUTURE)
        return bool(newest and newest["revocationList"][index])

    def did_role(self, did: str) -> DidRole:
        """The role of a DID. Every DID here is registered and may write for itself."""
        return DidRole(is_registered=True, may_write=True, may_endorse=True)

    def did_service(self, did: str) -> DidService | None:
        """The key and the endpoint of a DID, or None if it is not published."""
        found = self._find_body(PublishedObject.Kind.DID, did)
        if found is None:
            return None
        rows = DidEndpoint.objects.filter(network=self.network, did=did)
        endpoint = rows.values_list("endpoint", flat=True).first()
        return DidService(found["verkey"], endpoint or "", [])

    def agreement(self) -> None:
        """Return None: the local network has no agreement."""
        return None

    def _lock(self, issuer_did: str) -> None:
        """Lock the writes of an issuer until the transaction ends."""
        fetch_rows(LOCK_SQL, [f"{self.network.pk} {issuer_did}", self.network.pk])

    def _taken_tags(self, issuer_did: str, schema_id: str) -> tuple[str, set[str]]:
        """The id prefix of an issuer's definitions of a schema, and their tags."""
        schema = PublishedObject.objects.get(network=self.network, object_id=schema_id)
        id_prefix = f"{issuer_did}:3:CL:{schema.sequence}:"
        definitions = PublishedObject.objects.filter(
            network=self.network, object_id__startswith=id_prefix
        )
        object_ids = definitions.values_list("object_id", flat=True)
        return id_prefix, {one.removeprefix(id_prefix) for one in object_ids}

    def _find_body(self, kind: str, object_id: str) -> Any:
        try:
            return published_body(self.network.pk, kind, object_id)
        except LookupError:
            return None

    def _write_object(
        self, kind: str, object_id: str, body: Mapping[str, object]
    ) -> None:
        PublishedObject.objects.create(
            network=self.network,
            kind=kind,
            object_id=object_id,
            sequence=self.network.next_sequence(),
            body=body,
        )


@lru_cache(maxsize=2000)
def published_body(network_id: str, kind: str, object_id: str) -> Any:
    """A published object. It is cached forever, because it never changes.

    The caller must not modify it. LookupError if it is not published yet: absence is
    not cached.
    """
    body = read_body(network_id, kind, object_id)
    if body is None:
        raise LookupError(object_id)
    return body


def read_body(network_id: str, kind: str, object_id: str) -> Any:
    """A published object, read from the database without the cache, for writes."""
    if "\0" in object_id:
        return None  # PostgreSQL cannot store this character
    rows = PublishedObject.objects.filter(
        network_id=network_id, kind=kind, object_id=object_id
    )
    return rows.values_list("body", flat=True).first()
