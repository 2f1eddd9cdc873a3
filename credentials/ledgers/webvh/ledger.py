"""The network `webvh`: what is made here, as rows, and what others publish.

An object is a resource below the address of its issuer's DID: its id is the DID and a
digest of its content. So nothing can be read off an id but the DID, and a name is taken
once because a row says so. A status list is final as soon as it is published: it is a
resource of its own, and the links of its registry name it.
"""

from typing import Any, cast

from core.errors import Conflict
from credentials.ledgers.base import (
    DidRole,
    DidService,
    default_tags,
    schema_exists,
    tag_taken,
)
from credentials.ledgers.local import published_body
from credentials.ledgers.published import FAR_FUTURE, PublishedObject, StatusList
from credentials.ledgers.webvh import encoding, own_did, own_log
from credentials.ledgers.webvh.own_log import Json
from credentials.ledgers.webvh.rows import WebvhDid, WebvhResource
from tenants.models import Network
from wallets import keys
from wallets.anoncreds.objects import (
    DefinitionBody,
    RegistryBody,
    SchemaBody,
    StatusListBody,
)
from wallets.models import Wallet

RESOURCES = "/resources/"
Kind = PublishedObject.Kind


class WebvhLedger:
    is_remote = False
    # Each revocation may add a link to the registry, which a proof reads many times.
    max_places: int | None = 250

    def __init__(self, network: Network) -> None:
        self.network = network

    def schema_id_of(self, schema: SchemaBody) -> str:
        return resource_id(schema["issuerId"], sorted_schema(schema))

    def publish_did(self, did: str, verkey: str) -> None:
        """409 `did_taken`: a DID is made with its log (own_did.create)."""
        raise Conflict("did_taken", f"{did} cannot be published on {self.network}.")

    def publish_endpoint(self, did: str, endpoint: str) -> None:
        """Write the endpoint into the document. 409 `did_ended`, `log_full`."""
        wallet = Wallet.objects.get(webvh_did=did, is_organization=True)
        own_did.publish_endpoint(did, wallet.public_key.verkey, endpoint)

    def publish_schema(self, schema: SchemaBody) -> str:
        """Publish a schema, unless the same one exists. Return its id.

        Its attributes are sorted: a schema is one, in whatever order they are given.
        409 `schema_exists` if it exists with other attributes, `did_ended`.
        """
        row = own_did.lock_live(did=schema["issuerId"])
        content = sorted_schema(schema)
        name = f"schema {schema['name']} {schema['version']}"
        schema_id = resource_id(row.did, content)
        known = row.resources.filter(unique_name=name).first()
        if known and known.digest != digest_in(schema_id):
            raise schema_exists(f"{schema['name']} {schema['version']}")
        if not known:
            own_did.publish_resource(
                row, content, "anonCredsSchema", schema["name"], name
            )
            self._write_object(Kind.SCHEMA, schema_id, content)
        return schema_id

    def publish_definition(self, definition: DefinitionBody, tag: str | None) -> str:
        """Publish a definition and return its id. 409 `tag_taken`, `did_ended`.

        Without a tag, it gets the first of the default tags that is free.
        """
        row = own_did.lock_live(did=definition["issuerId"])
        prefix = definition_prefix(definition["schemaId"])
        names = row.resources.filter(unique_name__startswith=prefix)
        taken = {
            name.removeprefix(prefix)
            for name in names.values_list("unique_name", flat=True)
        }
        if tag in taken:
            raise tag_taken(tag)
        definition["tag"] = tag or next(
            one for one in default_tags() if one not in taken
        )
        content = cast(Json, definition)
        definition_id = own_did.publish_resource(
            row,
            content,
            "anonCredsCredDef",
            definition["tag"],
            prefix + definition["tag"],
        )
        self._write_object(Kind.DEFINITION, definition_id, content)
        return definition_id

    def publish_registry(self, public: RegistryBody) -> str:
        """Publish a registry, which names no list yet, and return its id."""
        row = own_did.lock_live(did=public["issuerId"])
        content = cast(Json, public)
        digest = digest_in(public["credDefId"])
        registry_id = own_did.publish_resource(
            row,
            content,
            "anonCredsRevocRegDef",
            public["tag"],
            f"registry {digest} {public['tag']}",
            links=[],
        )
        self._write_object(Kind.REGISTRY, registry_id, content)
        return registry_id

    def publish_status_list(self, status_list: StatusListBody) -> None:
        """Publish a list, then the registry anew, with a link to the list."""
        row = own_did.lock_live(did=status_list["issuerId"])
        registry_id, timestamp = status_list["revRegDefId"], status_list["timestamp"]
        # Its row and not the cache, which would keep it even after a rollback.
        registry = row.resources.get(digest=digest_in(registry_id))
        document = registry.parse()
        list_id = own_did.publish_resource(
            row,
            cast(Json, status_list),
            "anonCredsStatusList",
            document["metadata"]["resourceName"],
            f"list {registry.digest} {timestamp}",
        )
        StatusList.objects.create(
            network=self.network,
            registry_id=registry_id,
            timestamp=timestamp,
            body=status_list,
            is_final=True,
        )
        # The links are outside of what the id of the registry is made of.
        link = {"id": list_id, "type": "anonCredsStatusList", "timestamp": timestamp}
        document["links"] = [*document["links"], link]
        own_did.replace_document(row, registry, document)

    def replace_status_list(self, status_list: StatusListBody) -> bool:
        return False  # whoever reads the registry may have its id

    def has_tag(self, issuer_did: str, schema_id: str, tag: str | None) -> bool:
        """Whether the tag is taken now. publish_definition() checks it again."""
        name = f"{definition_prefix(schema_id)}{tag or 'default'}"
        rows = WebvhResource.objects.filter(did__did=issuer_did, unique_name=name)
        return rows.exists()

    def schema(self, schema_id: str) -> SchemaBody | None:
        """Return a schema, or None. Cached: the caller must not modify it."""
        return self._cached(Kind.SCHEMA, schema_id)

    def definition(self, definition_id: str) -> DefinitionBody | None:
        """Return a definition, or None. Cached: the caller must not modify it."""
        return self._cached(Kind.DEFINITION, definition_id)

    def revocation_registry(self, registry_id: str) -> RegistryBody | None:
        """Return a registry, or None. Cached: the caller must not modify it."""
        return self._cached(Kind.REGISTRY, registry_id)

    def status_list(self, registry_id: str, timestamp: int) -> StatusListBody | None:
        """Return the newest list not later than `timestamp` (unix seconds), or None."""
        if "\0" in registry_id:
            return None  # PostgreSQL cannot store this character
        return StatusList.newest(self.network, registry_id, timestamp)

    def final_status_list(
        self, registry_id: str, timestamp: int
    ) -> StatusListBody | None:
        return self.status_list(registry_id, timestamp)

    def is_revoked(self, registry_id: str, index: int) -> bool:
        newest = self.status_list(registry_id, FAR_FUTURE)
        return bool(newest and newest["revocationList"][index])

    def did_role(self, did: str) -> DidRole:
        """The role of a DID of ours: it publishes until it has ended."""
        rows = WebvhDid.objects.filter(did=did)
        may_write = rows.filter(next_key__isnull=False).exists()
        return DidRole(rows.exists(), may_write=may_write, may_endorse=may_write)

    def did_service(self, did: str) -> DidService | None:
        """The key and the endpoint in the document of a DID of ours, or None."""
        log = WebvhDid.objects.filter(did=did).values_list("log", flat=True).first()
        if log is None:
            return None
        for service in own_log.read_last(log)["state"].get("service", ()):
            key = service["recipientKeys"][0].partition("#")[0]
            verkey = encoding.verkey_of(key.removeprefix("did:key:"))
            return DidService(verkey, service["serviceEndpoint"], [])
        return None

    def agreement(self) -> None:
        return None

    def _cached(self, kind: str, object_id: str) -> Any:
        try:
            return published_body(self.network.pk, kind, object_id)
        except LookupError:
            return None

    def _write_object(self, kind: str, object_id: str, body: Json) -> None:
        PublishedObject.objects.create(
            network=self.network,
            kind=kind,
            object_id=object_id,
            sequence=self.network.next_sequence(),
            body=body,
        )


def resource_id(did: str, content: Json) -> str:
    return f"{did}{RESOURCES}{encoding.resource_digest(content)}"


def digest_in(resource_id: str) -> str:
    return resource_id.rpartition(RESOURCES)[2]


def definition_prefix(schema_id: str) -> str:
    """What the unique names of an issuer's definitions of a schema begin with.

    The schema may be somebody else's: then its whole id is hashed.
    """
    return f"definition {keys.multihash(schema_id.encode())} "


def sorted_schema(schema: SchemaBody) -> Json:
    return {**schema, "attrNames": sorted(schema["attrNames"])}
