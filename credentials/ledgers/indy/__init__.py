"""An Indy ledger: written to with signatures, read with proofs of its state.

Ids are unqualified (`DID:2:name:version`, `DID:3:CL:<schema's number>:<tag>`, …). What never
changes there is kept in our database when it is first seen; absence and lists are asked for anew,
outside of transactions.
Publishing may be repeated: what stands there already, by us, is taken as done.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from indy_vdr import ledger

from agency.core import network_reads
from agency.core.errors import Conflict, Unavailable
from credentials.ledgers.base import (
    Agreement,
    DidRole,
    schema_exists,
    schema_id_of,
    tag_taken,
)
from credentials.ledgers.indy import pool, reads, writes
from credentials.ledgers.indy.reads import Found
from credentials.ledgers.local import published
from credentials.models.published import PublishedObject, StatusList
from tenants.models import Network
from wallets import keys

SHOWS_AFTER = 5.0  # seconds in which a read must show what was written
BEHIND = 2.0  # seconds by which a node may be behind what somebody else's issuer has published
ABSENT_AFTER = (
    0.5  # seconds after which what others may just have written is said to be absent
)
LATEST = 2**40
Seen = TypeVar("Seen")


class IndyLedger:
    is_remote = True

    def __init__(self, network: Network) -> None:
        self.network = network

    def publish_did(self, did: str, verkey: str) -> None:
        """409 `did_taken` if it stands there with another key, `did_not_registered`."""
        standing = self._publish(
            lambda: reads.nym(self.network, did),
            lambda: writes.register(self.network, did, verkey),
        )
        if standing.verkey not in (verkey, abbreviated(verkey)):
            raise Conflict(
                "did_taken", f"The DID {did} is on the network with another key."
            )

    def did_role(self, did: str) -> DidRole:
        found = reads.nym(self.network, did)
        if found is None:
            return DidRole(False, False, False)
        return DidRole(True, found.may_write, found.may_endorse)

    def agreement(self) -> Agreement | None:
        return reads.agreement(self.network)

    def publish_schema(self, schema: dict[str, Any]) -> str:
        """The schema's id. The same schema again is found; other attributes are a 409."""
        schema_id, issuer = schema_id_of(schema), schema["issuerId"]
        names = ("name", "version", "attrNames")
        body = {"ver": "1.0", "id": schema_id} | {name: schema[name] for name in names}
        found = self._publish(
            lambda: reads.schema(self.network, schema_id),
            lambda: writes.write(
                self.network, issuer, ledger.build_schema_request, body
            ),
        )
        if sorted(found.body["attrNames"]) != sorted(schema["attrNames"]):
            raise schema_exists(schema_id)
        self._keep(PublishedObject.Kind.SCHEMA, schema_id, found._replace(body=schema))
        return schema_id

    def publish_definition(self, definition: dict[str, Any], tag: str | None) -> str:
        """The definition's id. 409 `tag_taken` if another one has it.

        The tag must be the caller's alone: of two writers the ledger lets the second overwrite.
        """
        tag = tag or "default"
        issuer, sequence = (
            definition["issuerId"],
            self._sequence(definition["schemaId"]),
        )
        definition_id = f"{issuer}:3:CL:{sequence}:{tag}"
        body = {
            "ver": "1.0",
            "id": definition_id,
            "schemaId": str(sequence),
            "type": "CL",
        }
        body |= {"tag": tag, "value": definition["value"]}
        found = self._publish(
            lambda: reads.definition(self.network, definition_id),
            lambda: writes.write(
                self.network, issuer, ledger.build_cred_def_request, body
            ),
        )
        if found.body["value"]["primary"] != definition["value"]["primary"]:
            raise tag_taken(tag)
        definition["tag"] = tag
        self._keep(PublishedObject.Kind.DEFINITION, definition_id, found)
        return definition_id

    def publish_registry(self, public: dict[str, Any]) -> str:
        """The registry's id, `DID:4:<definition id>:CL_ACCUM:<tag>`. 409 `registry_exists`."""
        issuer, definition_id = public["issuerId"], public["credDefId"]
        registry_id = f"{issuer}:4:{definition_id}:CL_ACCUM:{public['tag']}"
        names = ("revocDefType", "tag", "credDefId")
        body = {"ver": "1.0", "id": registry_id} | {
            name: public[name] for name in names
        }
        body["value"] = {"issuanceType": "ISSUANCE_BY_DEFAULT", **public["value"]}
        found = self._publish(
            lambda: reads.registry(self.network, registry_id),
            lambda: writes.write(
                self.network, issuer, ledger.build_revoc_reg_def_request, body
            ),
        )
        if found.body["value"] != body["value"]:
            raise Conflict(
                "registry_exists", f"There is another registry {registry_id}."
            )
        self._keep(PublishedObject.Kind.REGISTRY, registry_id, found)
        return registry_id

    def publish_status_list(self, status_list: dict[str, Any]) -> None:
        """The time of the list becomes that of the ledger.

        Unavailable `list_superseded` if somebody else published one: make it of that one.
        """
        registry_id, accumulator = (
            status_list["revRegDefId"],
            status_list["currentAccumulator"],
        )
        newest = self.status_list(registry_id, LATEST)

        def shown() -> dict[str, Any] | None:
            found = self.status_list(registry_id, LATEST)
            return (
                found if found and found["currentAccumulator"] == accumulator else None
            )

        try:
            found = self._publish(shown, lambda: self._write_entry(status_list, newest))
        except pool.Refused:
            raise superseded() from None
        self._keep_list(found)

    def _write_entry(
        self, status_list: dict[str, Any], newest: dict[str, Any] | None
    ) -> None:
        value: dict[str, Any] = {"accum": status_list["currentAccumulator"]}
        if newest:
            changes = difference(
                newest["revocationList"], status_list["revocationList"]
            )
            if changes[
                "issued"
            ]:  # listed by another since: nothing is ever taken back here
                raise superseded()
            value |= {"prevAccum": newest["currentAccumulator"], **changes}
        entry = {"ver": "1.0", "value": value}
        arguments = (status_list["revRegDefId"], "CL_ACCUM", entry)
        build = ledger.build_revoc_reg_entry_request
        writes.write(self.network, status_list["issuerId"], build, *arguments)

    def has_tag(self, issuer_did: str, schema_id: str, tag: str | None) -> bool:
        if self._find(PublishedObject.Kind.SCHEMA, schema_id, reads.schema) is None:
            return False
        base = f"{issuer_did}:3:CL:{self._sequence(schema_id)}:"
        return reads.definition(self.network, base + (tag or "default")) is not None

    def schema(self, schema_id: str) -> dict[str, Any] | None:
        return self._look(PublishedObject.Kind.SCHEMA, schema_id, reads.schema)

    def definition(self, definition_id: str) -> dict[str, Any] | None:
        return self._look(
            PublishedObject.Kind.DEFINITION, definition_id, reads.definition
        )

    def revocation_registry(self, registry_id: str) -> dict[str, Any] | None:
        return self._look(PublishedObject.Kind.REGISTRY, registry_id, reads.registry)

    def status_list(self, registry_id: str, timestamp: int) -> dict[str, Any] | None:
        """The newest list that is not later than `timestamp` (unix seconds).

        A node may be behind what was published from here; the list that is kept here then counts.
        """
        name = (self.network.pk, registry_id, timestamp)
        return network_reads.read_once(
            name, lambda: self._newest_list(registry_id, timestamp)
        )

    def is_revoked(self, registry_id: str, index: int) -> bool:
        """Whether the newest list says so, at the latest after BEHIND."""

        def listed() -> bool | None:
            newest = self.status_list(registry_id, int(time.time()))
            return bool(newest and newest["revocationList"][index]) or None

        name = (self.network.pk, registry_id, "revoked", index)
        return bool(
            network_reads.read_once(
                name, lambda: until_seen(listed, BEHIND, BEHIND / 10)
            )
        )

    def _newest_list(self, registry_id: str, timestamp: int) -> dict[str, Any] | None:
        public = self.revocation_registry(registry_id)
        if public is None:
            return None
        ours = StatusList.newest(self.network, registry_id, timestamp)
        found = reads.status_list(self.network, registry_id, public, timestamp)
        if ours and (not found or found["timestamp"] < ours["timestamp"]):
            return ours
        return found

    def _publish(
        self, read: Callable[[], Seen | None], write: Callable[[], Any]
    ) -> Seen:
        """What stands there, written if it did not; reads until the write shows."""
        found = read()
        if found is not None:
            return found
        try:
            write()
        except pool.Refused:
            found = until_seen(
                read, SHOWS_AFTER / 10
            )  # maybe it stood there, unseen by one node
            if found is None:
                raise
        found = found or until_seen(read, SHOWS_AFTER)
        if found is None:
            raise pool.silent(self.network)
        return found

    def _sequence(self, schema_id: str) -> int:
        if self.schema(schema_id) is None:
            raise pool.silent(self.network)
        rows = PublishedObject.objects.filter(network=self.network, object_id=schema_id)
        return rows.values_list("sequence", flat=True).get()

    def _look(
        self, kind: str, object_id: str, read: Callable[[Network, str], Found | None]
    ) -> dict[str, Any] | None:
        """What is kept here or read; but one node does not decide that it is not there."""
        with suppress(LookupError):
            return published(self.network.pk, kind, object_id)
        name = (self.network.pk, kind, object_id)
        return network_reads.read_once(
            name,
            lambda: until_seen(lambda: self._find(kind, object_id, read), ABSENT_AFTER),
        )

    def _find(
        self, kind: str, object_id: str, read: Callable[[Network, str], Found | None]
    ) -> dict[str, Any] | None:
        try:
            return published(self.network.pk, kind, object_id)
        except LookupError:
            found = read(self.network, object_id)
        if found is None:
            return None
        self._keep(kind, object_id, found)
        return found.body

    def _keep(self, kind: str, object_id: str, found: Found) -> None:
        row = PublishedObject(network=self.network, kind=kind, object_id=object_id)
        row.body, row.sequence = found
        PublishedObject.objects.bulk_create([row], ignore_conflicts=True)

    def _keep_list(self, body: dict[str, Any]) -> None:
        row = StatusList(
            network=self.network, registry_id=body["revRegDefId"], body=body
        )
        row.timestamp = body["timestamp"]
        StatusList.objects.bulk_create([row], ignore_conflicts=True)


def superseded() -> Unavailable:
    return Unavailable(
        "list_superseded", "Another list was published meanwhile. Try again."
    )


def until_seen(
    read: Callable[[], Seen | None], seconds: float, pause: float = 0.05
) -> Seen | None:
    end = time.monotonic() + seconds
    while (found := read()) is None and time.monotonic() < end:
        time.sleep(pause)
    return found


def difference(before: list[int], after: list[int]) -> dict[str, list[int]]:
    """The indices that changed; a list may or may not have a place for the last index."""
    changed = [
        i for i, (old, new) in enumerate(zip(before, after, strict=False)) if old != new
    ]
    return {
        "issued": [index for index in changed if not after[index]],
        "revoked": [index for index in changed if after[index]],
    }


def abbreviated(verkey: str) -> str:
    """How ledgers may write the key from whose first 16 bytes the DID is made."""
    return "~" + keys.encode(keys.decode(verkey)[16:])
