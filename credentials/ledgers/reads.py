"""What an organization reads: objects of its network, and of any did:webvh.

An id that begins with `did:webvh:` says where its object is, so every organization
reads it, whatever its network. Those of DIDs that were made here are rows; others are
read over https (credentials/ledgers/webvh/reading.py).
"""

import time
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import cached_property, lru_cache, partial
from typing import TypeVar

from django.conf import settings

from connections.didcomm.dids import DID_WEBVH
from core.errors import Conflict
from core.valkey import rate_limits
from core.work import network_reads
from credentials.ledgers import find_webvh_ledger, ledger_of
from credentials.ledgers.base import Ledger, name_in
from credentials.ledgers.published import PublishedObject
from credentials.ledgers.webvh import resources
from credentials.ledgers.webvh.read_rows import ReadResource
from credentials.ledgers.webvh.reading import Reader
from credentials.ledgers.webvh.resources import Resource
from tenants.models import Tenant
from wallets.anoncreds.objects import (
    DefinitionBody,
    RegistryBody,
    SchemaBody,
    StatusListBody,
)

Found = TypeVar("Found")


class LedgerReads:
    """The reads of Ledger, on behalf of an organization.

    for_peer: whether a peer has given the ids. What peers make an organization read
    over https has a limit of its own, WEBVH_READS_PER_MINUTE.

    The errors of Ledger, and for a did:webvh: 409 `did_log_refused`, `did_log_forked`,
    `did_deactivated`, `resource_refused`; 429 `too_many_requests`.
    """

    def __init__(self, tenant: Tenant, for_peer: bool = False) -> None:
        self.tenant, self.for_peer = tenant, for_peer

    @cached_property
    def reader(self) -> Reader:
        return Reader(partial(take_token, self.tenant, self.for_peer))

    @cached_property
    def network_ledger(self) -> Ledger:
        return ledger_of(self.tenant.network)

    def schema(self, schema_id: str) -> SchemaBody | None:
        if ledger := self.ledger_with(schema_id):
            return ledger.schema(schema_id)
        found = self._read_resource(schema_id, resources.SCHEMA)
        return found.content if found else None

    def definition(self, definition_id: str) -> DefinitionBody | None:
        if ledger := self.ledger_with(definition_id):
            return ledger.definition(definition_id)
        found = self._read_resource(definition_id, resources.DEFINITION)
        return found.content if found else None

    def revocation_registry(self, registry_id: str) -> RegistryBody | None:
        if ledger := self.ledger_with(registry_id):
            return ledger.revocation_registry(registry_id)
        found = self._read_resource(registry_id, resources.REGISTRY)
        return found.content if found else None

    def status_list(self, registry_id: str, timestamp: int) -> StatusListBody | None:
        if ledger := self.ledger_with(registry_id):
            return ledger.status_list(registry_id, timestamp)
        return self._read_list(registry_id, timestamp, is_exact=True)

    def final_status_list(
        self, registry_id: str, timestamp: int
    ) -> StatusListBody | None:
        if ledger := self.ledger_with(registry_id):
            return ledger.final_status_list(registry_id, timestamp)
        return self._read_list(registry_id, timestamp, is_exact=False)

    def is_revoked(self, registry_id: str, index: int) -> bool:
        if ledger := self.ledger_with(registry_id):
            return ledger.is_revoked(registry_id, index)
        newest = self._read_list(registry_id, int(time.time()), is_exact=True)
        return bool(newest and any(newest["revocationList"][index : index + 1]))

    def ledger_with(self, object_id: str) -> Ledger | None:
        """The ledger of an object; None for that of a did:webvh of others."""
        if object_id.startswith(DID_WEBVH):
            return find_webvh_ledger(object_id)
        return self.network_ledger

    def _read_resource(self, resource_id: str, kind: str) -> Resource | None:
        read = partial(self.reader.resource, resource_id, kind)
        return read_or_refuse((kind, resource_id), read)

    def _read_list(
        self, registry_id: str, timestamp: int, is_exact: bool
    ) -> StatusListBody | None:
        read = partial(self.reader.status_list, registry_id, timestamp, is_exact)
        return read_or_refuse(("list", registry_id, timestamp, is_exact), read)


def name_of_schema(schema_id: str) -> str:
    """The name of a schema that was published or read here; else what its id says."""
    if not schema_id.startswith(DID_WEBVH):
        return name_in(schema_id)
    with suppress(LookupError):
        return stored_name(schema_id)
    return schema_id


@lru_cache(maxsize=2000)
def stored_name(schema_id: str) -> str:
    """Cached forever, as it never changes. LookupError if the schema is not here."""
    own = PublishedObject.objects.filter(object_id=schema_id)
    found = own.values_list("body__name", flat=True).first()
    if found is None:
        read = ReadResource.objects.filter(resource_id=schema_id)
        found = read.values_list("content__name", flat=True).first()
    if found is None:
        raise LookupError(schema_id)
    return found


def read_or_refuse(name: Hashable, read: Callable[[], Found]) -> Found:
    """Return what is read outside of transactions, or raise its Conflict here.

    So the caller can go on without one object, also in a transaction that runs again.
    """

    def attempt() -> Found | Conflict:
        try:
            return read()
        except Conflict as error:
            return error

    found = network_reads.read_outside_transaction(("webvh", name), attempt)
    if isinstance(found, Conflict):
        raise found
    return found


def take_token(tenant: Tenant, for_peer: bool) -> None:
    """Take a token for a call. 429 `too_many_requests`."""
    who = f"{'peers' if for_peer else 'own'}:{tenant.pk}"
    rate_limits.take_token("webvh", who, settings.WEBVH_READS_PER_MINUTE)
