"""An Indy ledger: writes are signed, and reads are verified with state proofs.

Ids are unqualified (`DID:2:name:version`, `DID:3:CL:<the schema's number>:<tag>`, …).
Objects that never change are copied to our database when they are first read. Absent
objects and status lists are read each time, outside of transactions.

Publishing can be repeated: an object of ours that is already on the ledger counts as
published.
"""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from indy_vdr import ledger

from core.errors import Conflict
from core.work import network_reads
from core.work.waiting import seconds_left
from credentials.ledgers.base import (
    Agreement,
    DidRole,
    DidService,
    list_superseded,
    registry_id_of,
    schema_exists,
    schema_id_of,
    tag_taken,
)
from credentials.ledgers.indy import pool, reads, writes
from credentials.ledgers.indy.reads import LedgerObject
from credentials.ledgers.local import published_body
from credentials.ledgers.published import FAR_FUTURE, PublishedObject, StatusList
from tenants.models import Network
from wallets import keys
from wallets.anoncreds.objects import (
    DefinitionBody,
    RegistryBody,
    SchemaBody,
    StatusListBody,
)

# Seconds within which a read must show what was written.
WRITE_VISIBLE_SECONDS = 5.0
# Seconds by which a node may lag behind what another issuer has published.
NODE_LAG_SECONDS = 2.0
# Seconds after which an object that others may just have written counts as absent.
ABSENCE_CHECK_SECONDS = 0.5
POLL_SECONDS = 0.05
Kind = PublishedObject.Kind
Seen = TypeVar("Seen")
Body = TypeVar("Body")
ReadObject = Callable[[Network, str], LedgerObject[Body] | None]


class IndyLedger:
    is_remote = True
    max_places: int | None = None

    def __init__(self, network: Network) -> None:
        self.network = network

    def schema_id_of(self, schema: SchemaBody) -> str:
        return schema_id_of(schema)

    def publish_did(self, did: str, verkey: str) -> None:
        """Publish a DID. 409 `did_taken` (with another key), `did_not_registered`."""
        nym = self._write_once(
            read=lambda: reads.fetch_nym(self.network, did),
            write=lambda: writes.register_did(self.network, did, verkey),
        )
        if nym.verkey not in (verkey, abbreviate_verkey(verkey)):
            raise Conflict(
                "did_taken", f"The DID {did} is on the network with another key."
            )

    def did_role(self, did: str) -> DidRole:
        nym = reads.fetch_nym(self.network, did)
        if nym is None:
            return DidRole(is_registered=False, may_write=False, may_endorse=False)
        return DidRole(
            is_registered=True, may_write=nym.may_write, may_endorse=nym.may_endorse
        )

    def did_service(self, did: str) -> DidService | None:
        """The key and the endpoint of a DID, or None if it is not on the ledger."""
        nym = reads.fetch_nym(self.network, did)
        if not nym or not nym.verkey:
            return None
        published = reads.fetch_endpoint(self.network, did) or {}
        endpoint = published.get("endpoint")
        listed = published.get("routingKeys")
        return DidService(
            keys.expand_verkey(did, nym.verkey),
            endpoint if isinstance(endpoint, str) else "",
            [str(key) for key in listed] if isinstance(listed, list) else [],
        )

    def publish_endpoint(self, did: str, endpoint: str) -> None:
        """Write the attribute `endpoint` of a DID, in the form that ACA-Py reads."""
        published = {"endpoint": endpoint, "routingKeys": []}
        self._write_once(
            read=lambda: reads.fetch_endpoint(self.network, did) == published or None,
            write=lambda: writes.write_as_organization(
                self.network,
                did,
                ledger.build_attrib_request,
                did,
                None,
                json.dumps({"endpoint": published}),
                None,
            ),
        )

    def agreement(self) -> Agreement | None:
        """Return the agreement in force, or None. Reads the ledger in each call.

        Outside of transactions; the errors of pool.send().
        """
        return reads.fetch_agreement(self.network)

    def publish_schema(self, schema: SchemaBody) -> str:
        """Publish a schema, unless the same one exists. Return its id.

        409 `schema_exists` if it exists with other attributes.
        """
        schema_id = schema_id_of(schema)
        body = {
            "ver": "1.0",
            "id": schema_id,
            "name": schema["name"],
            "version": schema["version"],
            "attrNames": schema["attrNames"],
        }
        found = self._write_once(
            read=lambda: reads.fetch_schema(self.network, schema_id),
            write=lambda: writes.write_as_organization(
                self.network, schema["issuerId"], ledger.build_schema_request, body
            ),
        )
        if sorted(found.body["attrNames"]) != sorted(schema["attrNames"]):
            raise schema_exists(schema_id)
        self._store_copy(Kind.SCHEMA, schema_id, found._replace(body=schema))
        return schema_id

    def publish_definition(self, definition: DefinitionBody, tag: str | None) -> str:
        """Publish a definition and return its id. 409 `tag_taken` if another has it.

        The caller must ensure that nobody else writes this tag: the ledger lets the
        second of two writers overwrite the definition.
        """
        tag = tag or "default"
        issuer_did = definition["issuerId"]
        sequence = self._schema_sequence(definition["schemaId"])
        definition_id = f"{issuer_did}:3:CL:{sequence}:{tag}"
        body = {
            "ver": "1.0",
            "id": definition_id,
            "schemaId": str(sequence),
            "type": "CL",
            "tag": tag,
            "value": definition["value"],
        }
        found = self._write_once(
            read=lambda: reads.fetch_definition(self.network, definition_id),
            write=lambda: writes.write_as_organization(
                self.network, issuer_did, ledger.build_cred_def_request, body
            ),
        )
        if found.body["value"]["primary"] != definition["value"]["primary"]:
            raise tag_taken(tag)
        definition["tag"] = tag
        self._store_copy(Kind.DEFINITION, definition_id, found)
        return definition_id

    def publish_registry(self, public: RegistryBody) -> str:
        """Publish a registry and return its id. 409 `registry_exists`."""
        registry_id = registry_id_of(public)
        body = {
            "ver": "1.0",
            "id": registry_id,
            "revocDefType": public["revocDefType"],
            "tag": public["tag"],
            "credDefId": public["credDefId"],
            "value": {"issuanceType": "ISSUANCE_BY_DEFAULT", **public["value"]},
        }
        found = self._write_once(
            read=lambda: reads.fetch_registry(self.network, registry_id),
            write=lambda: writes.write_as_organization(
                self.network,
                public["issuerId"],
                ledger.build_revoc_reg_def_request,
                body,
            ),
        )
        if found.body["value"] != body["value"]:
            raise Conflict(
                "registry_exists", f"There is another registry {registry_id}."
            )
        self._store_copy(Kind.REGISTRY, registry_id, found)
        return registry_id

    def publish_status_list(self, status_list: StatusListBody) -> None:
        """Publish a status list. The ledger sets the time of the published list.

        Unavailable `list_superseded` if another list was published in the meantime:
        make this one again, from that one.
        """
        registry_id = status_list["revRegDefId"]
        newest = self.status_list(registry_id, FAR_FUTURE)

        def read_own_list() -> StatusListBody | None:
            found = self.status_list(registry_id, FAR_FUTURE)
            if not found:
                return None
            is_own = found["currentAccumulator"] == status_list["currentAccumulator"]
            return found if is_own else None

        try:
            found = self._write_once(
                read=read_own_list,
                write=lambda: self._write_entry(status_list, newest),
            )
        except pool.Refused:
            raise list_superseded() from None
        copy = StatusList(
            network=self.network,
            registry_id=found["revRegDefId"],
            timestamp=found["timestamp"],
            body=found,
            is_final=True,
        )
        StatusList.objects.bulk_create([copy], ignore_conflicts=True)

    def replace_status_list(self, status_list: StatusListBody) -> bool:
        return False  # nothing on a ledger is ever replaced

    def _write_entry(
        self, status_list: StatusListBody, newest: StatusListBody | None
    ) -> None:
        value: dict[str, str | list[int]] = {"accum": status_list["currentAccumulator"]}
        if newest:
            # Some lists have no entry for the last index.
            pairs = zip(
                newest["revocationList"], status_list["revocationList"], strict=False
            )
            changed = {
                index: after
                for index, (before, after) in enumerate(pairs)
                if before != after
            }
            # We never undo a revocation, so another list has revoked these since.
            if not all(changed.values()):
                raise list_superseded()
            value |= {
                "prevAccum": newest["currentAccumulator"],
                "issued": [],
                "revoked": list(changed),
            }
        writes.write_as_organization(
            self.network,
            status_list["issuerId"],
            ledger.build_revoc_reg_entry_request,
            status_list["revRegDefId"],
            "CL_ACCUM",
            {"ver": "1.0", "value": value},
        )

    def has_tag(self, issuer_did: str, schema_id: str, tag: str | None) -> bool:
        schema = self._find_object(Kind.SCHEMA, schema_id, reads.fetch_schema)
        if schema is None:
            return False
        sequence = self._schema_sequence(schema_id)
        definition_id = f"{issuer_did}:3:CL:{sequence}:{tag or 'default'}"
        return reads.fetch_definition(self.network, definition_id) is not None

    def schema(self, schema_id: str) -> SchemaBody | None:
        """Return a schema, or None: see _cached_or_read()."""
        return self._cached_or_read(Kind.SCHEMA, schema_id, reads.fetch_schema)

    def definition(self, definition_id: str) -> DefinitionBody | None:
        """Return a definition, or None: see _cached_or_read()."""
        return self._cached_or_read(
            Kind.DEFINITION, definition_id, reads.fetch_definition
        )

    def revocation_registry(self, registry_id: str) -> RegistryBody | None:
        """Return a registry, or None: see _cached_or_read()."""
        return self._cached_or_read(Kind.REGISTRY, registry_id, reads.fetch_registry)

    def status_list(self, registry_id: str, timestamp: int) -> StatusListBody | None:
        """Return the newest list not later than `timestamp` (unix seconds), or None.

        A node may lag behind what was published from here: then our copy of the list
        is returned. Lists are not cached: each call reads the ledger, with the errors
        of Ledger.
        """
        name = (self.network.pk, registry_id, timestamp)
        return network_reads.read_outside_transaction(
            name, lambda: self._newest_list(registry_id, timestamp)
        )

    def final_status_list(
        self, registry_id: str, timestamp: int
    ) -> StatusListBody | None:
        return self.status_list(registry_id, timestamp)

    def is_revoked(self, registry_id: str, index: int) -> bool:
        """Return whether the newest list revokes the index.

        As nodes lag, it polls for NODE_LAG_SECONDS until it does. The errors of
        Ledger.
        """

        def is_listed() -> bool | None:
            newest = self.status_list(registry_id, int(time.time()))
            return bool(newest and newest["revocationList"][index]) or None

        name = (self.network.pk, registry_id, "revoked", index)
        poll = partial(
            poll_until_found, is_listed, NODE_LAG_SECONDS, NODE_LAG_SECONDS / 10
        )
        return bool(network_reads.read_outside_transaction(name, poll))

    def _newest_list(self, registry_id: str, timestamp: int) -> StatusListBody | None:
        public = self.revocation_registry(registry_id)
        if public is None:
            return None
        ours = StatusList.newest(self.network, registry_id, timestamp)
        found = reads.fetch_status_list(self.network, registry_id, public, timestamp)
        if ours and (not found or found["timestamp"] < ours["timestamp"]):
            return ours
        return found

    def _write_once(
        self, read: Callable[[], Seen | None], write: Callable[[], object]
    ) -> Seen:
        """Write an object unless the ledger has it. Return it once a read shows it."""
        found = read()
        if found is not None:
            return found
        try:
            write()
        except pool.Refused:
            # It may be there already: the first read may have reached a lagging node.
            found = poll_until_found(read, WRITE_VISIBLE_SECONDS / 10)
            if found is None:
                raise
        found = found or poll_until_found(read, WRITE_VISIBLE_SECONDS)
        if found is None:
            raise pool.no_response(self.network)
        return found

    def _schema_sequence(self, schema_id: str) -> int:
        if self.schema(schema_id) is None:
            raise pool.no_response(self.network)
        rows = PublishedObject.objects.filter(network=self.network, object_id=schema_id)
        return rows.values_list("sequence", flat=True).get()

    def _cached_or_read(
        self, kind: str, object_id: str, read: ReadObject[Body]
    ) -> Body | None:
        """Return the stored copy or else the object on the ledger, or None.

        The caller must not modify it. The ledger is polled for ABSENCE_CHECK_SECONDS,
        because the node that answers may lag behind. 503 `ledger_unavailable`, 409
        `ledger_refused`; in a transaction ReadNeeded, if there is no copy.
        """
        with suppress(LookupError):
            return published_body(self.network.pk, kind, object_id)
        poll = partial(
            poll_until_found,
            lambda: self._find_object(kind, object_id, read),
            ABSENCE_CHECK_SECONDS,
        )
        return network_reads.read_outside_transaction(
            (self.network.pk, kind, object_id), poll
        )

    def _find_object(
        self, kind: str, object_id: str, read: ReadObject[Body]
    ) -> Body | None:
        try:
            return published_body(self.network.pk, kind, object_id)
        except LookupError:
            found = read(self.network, object_id)
        if found is None:
            return None
        self._store_copy(kind, object_id, found)
        return found.body

    def _store_copy(self, kind: str, object_id: str, found: LedgerObject[Body]) -> None:
        copy = PublishedObject(
            network=self.network,
            kind=kind,
            object_id=object_id,
            body=found.body,
            sequence=found.sequence,
        )
        PublishedObject.objects.bulk_create([copy], ignore_conflicts=True)


def poll_until_found(
    read: Callable[[], Seen | None], seconds: float, pause: float = POLL_SECONDS
) -> Seen | None:
    deadline = time.monotonic() + seconds_left(seconds)
    while (found := read()) is None and time.monotonic() < deadline:
        time.sleep(pause)
    return found


def abbreviate_verkey(verkey: str) -> str:
    """The short form of the key of a DID, as ledgers may write it.

    The DID has the first 16 bytes of the key; the short form has the others.
    """
    return "~" + keys.encode_key(keys.decode_key(verkey)[16:])
