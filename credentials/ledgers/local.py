"""The local network: rows of our database, shaped like an Indy ledger, readable by anyone.

Ids are Indy's: `DID:2:name:version` for a schema, `DID:3:CL:<schema's sequence number>:<tag>` for a
definition. Every write gets the network's next sequence number, from 1.
"""

import time
from functools import lru_cache
from typing import Any

from agency.core.errors import Conflict
from credentials.ledgers.base import DidRole, schema_exists, schema_id_of, tag_taken
from credentials.models.published import PublishedObject, StatusList
from tenants.models import Network


class LocalLedger:
    is_remote = False

    def __init__(self, network: Network) -> None:
        self.network = network

    def publish_did(self, did: str, verkey: str) -> None:
        """409 `did_taken` if the DID stands on the network already."""
        kind = PublishedObject.Kind.DID
        Network.objects.select_for_update().get(pk=self.network.pk)
        if read(self.network.pk, kind, did):
            raise Conflict("did_taken", f"The DID {did} is on the network already.")
        self._write(kind, did, {"did": did, "verkey": verkey})

    def publish_schema(self, schema: dict[str, Any]) -> str:
        """The schema's id. The same schema again is found; other attributes are a 409."""
        schema_id = schema_id_of(schema)
        Network.objects.select_for_update().get(pk=self.network.pk)
        known = read(self.network.pk, PublishedObject.Kind.SCHEMA, schema_id)
        if known and sorted(known["attrNames"]) != sorted(schema["attrNames"]):
            raise schema_exists(schema_id)
        if not known:
            self._write(PublishedObject.Kind.SCHEMA, schema_id, schema)
        return schema_id

    def publish_definition(self, definition: dict[str, Any], tag: str | None) -> str:
        """The definition's id. Without a tag: `default`, `default-2`, …; a taken one is 409."""
        kind = PublishedObject.Kind.DEFINITION
        Network.objects.select_for_update().get(pk=self.network.pk)
        base = self._base(definition["issuerId"], definition["schemaId"])
        taken = self._tags(base)
        if tag in taken:
            raise tag_taken(tag)
        definition["tag"] = tag or free_tag(taken)
        self._write(kind, base + definition["tag"], definition)
        return base + definition["tag"]

    def publish_registry(self, public: dict[str, Any]) -> str:
        """The registry's id, `DID:4:<definition id>:CL_ACCUM:<tag>`."""
        registry_id = (
            f"{public['issuerId']}:4:{public['credDefId']}:CL_ACCUM:{public['tag']}"
        )
        self._write(PublishedObject.Kind.REGISTRY, registry_id, public)
        return registry_id

    def publish_status_list(self, status_list: dict[str, Any]) -> None:
        StatusList.objects.create(
            network=self.network,
            registry_id=status_list["revRegDefId"],
            timestamp=status_list["timestamp"],
            body=status_list,
        )

    def has_tag(self, issuer_did: str, schema_id: str, tag: str | None) -> bool:
        """Whether the tag is taken: asked before a key is made, decided when it is published."""
        known = self.schema(schema_id) is not None
        return known and tag in self._tags(self._base(issuer_did, schema_id))

    def _base(self, issuer_did: str, schema_id: str) -> str:
        schema = PublishedObject.objects.get(network=self.network, object_id=schema_id)
        return f"{issuer_did}:3:CL:{schema.sequence}:"

    def schema(self, schema_id: str) -> dict[str, Any] | None:
        return self._find(PublishedObject.Kind.SCHEMA, schema_id)

    def definition(self, definition_id: str) -> dict[str, Any] | None:
        return self._find(PublishedObject.Kind.DEFINITION, definition_id)

    def revocation_registry(self, registry_id: str) -> dict[str, Any] | None:
        return self._find(PublishedObject.Kind.REGISTRY, registry_id)

    def status_list(self, registry_id: str, timestamp: int) -> dict[str, Any] | None:
        """The newest list that is not later than `timestamp` (unix seconds)."""
        if "\0" in registry_id:
            return None
        return StatusList.newest(self.network, registry_id, timestamp)

    def is_revoked(self, registry_id: str, index: int) -> bool:
        """Whether the newest list says so."""
        newest = self.status_list(registry_id, int(time.time()))
        return bool(newest and newest["revocationList"][index])

    def did_role(self, did: str) -> DidRole:
        """Every DID here is registered and writes for itself."""
        return DidRole(True, True, True)

    def agreement(self) -> None:
        return None

    def _find(self, kind: str, object_id: str) -> dict[str, Any] | None:
        try:
            return published(self.network.pk, kind, object_id)
        except LookupError:
            return None

    def _tags(self, base: str) -> set[str]:
        published = PublishedObject.objects.filter(
            network=self.network, object_id__startswith=base
        )
        return {
            name.removeprefix(base)
            for name in published.values_list("object_id", flat=True)
        }

    def _write(self, kind: str, object_id: str, body: dict[str, Any]) -> None:
        PublishedObject.objects.create(
            network=self.network,
            kind=kind,
            object_id=object_id,
            sequence=self.network.next_sequence(),
            body=body,
        )


@lru_cache(maxsize=2000)
def published(network_id: str, kind: str, object_id: str) -> dict[str, Any]:
    """What stands on the network never changes; what is not there yet is not remembered.

    The caller must not change the answer.
    """
    body = read(network_id, kind, object_id)
    if body is None:
        raise LookupError(object_id)
    return body


def read(network_id: str, kind: str, object_id: str) -> dict[str, Any] | None:
    """What stands on the network now: to decide by before a write, which a cache cannot."""
    if "\0" in object_id:
        return None  # the database takes no such text
    found = PublishedObject.objects.filter(
        network_id=network_id, kind=kind, object_id=object_id
    )
    return found.values_list("body", flat=True).first()


def free_tag(taken: set[str]) -> str:
    number, tag = 1, "default"
    while tag in taken:
        number += 1
        tag = f"default-{number}"
    return tag
