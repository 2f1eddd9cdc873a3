"""Check an attested resource of a did:webvh: its digest, its proof and its content.

did:webvh AnonCreds method v0.1. No network and no database here.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from django.conf import settings

from core.text import bounded_json
from core.text.bounded_json import JSON, Members
from credentials.ledgers.webvh import encoding
from credentials.ledgers.webvh.refusals import Broken, Refused, require
from wallets.anoncreds.objects import RegistryBody, StatusListBody

MAX_RESOURCE_BYTES = 2 * 1024 * 1024
SCHEMA = "anonCredsSchema"
DEFINITION = "anonCredsCredDef"
REGISTRY = "anonCredsRevocRegDef"
STATUS_LIST = "anonCredsStatusList"
MAX_ATTRIBUTES = 125


class Link(NamedTuple):
    """The link of a registry to one of its status lists."""

    timestamp: int
    resource_id: str


class Resource(NamedTuple):
    content: Any
    links: list[Link]


def check_resource(
    resource_id: str, kind: str, data: bytes, document: Members
) -> Resource:
    """Check a resource against the DID document of its DID, from a checked log.

    kind: the resource type that is expected. Raises Refused `resource_refused`.
    """
    try:
        try:
            resource = bounded_json.loads(data.decode(), unique_keys=True)
        except ValueError:  # BadJSON too
            raise Broken("no_json") from None
        return _check_resource(resource_id, kind, resource, document)
    except Broken as error:
        raise Refused("resource_refused", resource_id, str(error)) from None


def _check_resource(
    resource_id: str, kind: str, resource: JSON, document: Members
) -> Resource:
    if not isinstance(resource, dict):
        raise Broken("no_attested_resource")
    types, metadata = resource.get("type"), resource.get("metadata")
    is_attested = isinstance(types, list) and "AttestedResource" in types
    if not is_attested or not isinstance(metadata, dict):
        raise Broken("no_attested_resource")
    require(resource.get("id") == resource_id, "another_id")
    content, proof = resource.get("content"), resource.get("proof")
    if not isinstance(content, dict) or not isinstance(proof, dict):
        raise Broken("no_content_or_proof")
    did, _, digest = resource_id.partition("/resources/")
    require(encoding.resource_digest(content) == digest, "another_digest")
    multikey = _key_that_asserts(did, str(proof.get("verificationMethod")), document)
    require(encoding.is_proven(resource, proof, multikey), "wrong_proof")
    require(metadata.get("resourceType") == kind, "another_type")
    require(content.get("issuerId") == did, "another_issuer")
    require(CONTENTS[kind](did, content), "wrong_content")
    links = _read_links(did, resource.get("links", [])) if kind == REGISTRY else []
    return Resource(content, links)


def _key_that_asserts(did: str, method: str, document: Members) -> str:
    """The multikey of a verification method that may sign resources of the DID.

    DIDs that Credo makes list their key for authentication alone, beside an empty
    `assertionMethod`: then that counts.
    """
    require(method.partition("#")[0] == did, "key_of_another_did")
    names = (method, method.removeprefix(did))
    allowed = document.get("assertionMethod") or document.get("authentication")
    embedded = [one for one in _listed(allowed) if isinstance(one, dict)]
    ids = [one.get("id") if isinstance(one, dict) else one for one in _listed(allowed)]
    require(any(name in ids for name in names), "key_not_for_assertion")
    listed = [*_listed(document.get("verificationMethod")), *embedded]
    keys = [one for one in listed if isinstance(one, dict) and one.get("id") in names]
    require(len(keys) == 1 and keys[0].get("type") == "Multikey", "key_not_in_document")
    return str(keys[0].get("publicKeyMultibase"))


def _listed(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


def _is_schema(did: str, content: Members) -> bool:
    names = _listed(content.get("attrNames"))
    return (
        _are_texts(content, "name", "version")
        and 0 < len(names) <= MAX_ATTRIBUTES
        and all(isinstance(name, str) for name in names)
    )


def _is_definition(did: str, content: Members) -> bool:
    value = content.get("value")
    return (
        _are_texts(content, "schemaId", "tag")
        and content.get("type") == "CL"
        and isinstance(value, dict)
        and isinstance(value.get("primary"), dict)
    )


def _is_registry(did: str, content: Members) -> bool:
    """Whether it is a registry, of a definition of the same DID, that is readable here."""
    value = content.get("value")
    if not isinstance(value, dict) or not _are_texts(content, "credDefId", "tag"):
        return False
    places = value.get("maxCredNum")
    return (
        content.get("revocDefType") == "CL_ACCUM"
        and str(content["credDefId"]).startswith(f"{did}/resources/")
        and type(places) is int
        and 0 < places <= settings.MAX_PLACES
        and isinstance(value.get("publicKeys"), dict)
        and _are_texts(value, "tailsHash", "tailsLocation")
    )


def _is_status_list(did: str, content: Members) -> bool:
    bits = content.get("revocationList")
    return (
        _are_texts(content, "revRegDefId", "currentAccumulator")
        and isinstance(bits, list)
        and all(type(bit) is int and bit in (0, 1) for bit in bits)
        and type(content.get("timestamp", 0)) is int
    )


CONTENTS: dict[str, Callable[[str, Members], bool]] = {
    SCHEMA: _is_schema,
    DEFINITION: _is_definition,
    REGISTRY: _is_registry,
    STATUS_LIST: _is_status_list,
}


def _are_texts(content: Members, *names: str) -> bool:
    return all(isinstance(content.get(name), str) for name in names)


def _read_links(did: str, listed: JSON) -> list[Link]:
    """The links to status lists, in the order of their times. One list a second."""
    require(isinstance(listed, list), "wrong_link")
    links = []
    for one in _listed(listed):
        if not isinstance(one, dict):
            raise Broken("wrong_link")
        timestamp, list_id = one.get("timestamp"), one.get("id")
        if type(timestamp) is not int or not isinstance(list_id, str):
            raise Broken("wrong_link")
        if one.get("type") == STATUS_LIST:
            require(list_id.startswith(f"{did}/resources/"), "wrong_link")
            links.append(Link(timestamp, list_id))
    times = {link.timestamp for link in links}
    require(len(times) == len(links), "two_lists_of_one_time")
    return sorted(links)


def check_status_list(
    body: StatusListBody, link: Link, registry_id: str, registry: RegistryBody
) -> StatusListBody:
    """Return a list that is the registry's, with the time of its link.

    Raises Refused `resource_refused`.
    """
    places = registry["value"]["maxCredNum"]
    # Some lists have no entry for the last index.
    has_places = len(body["revocationList"]) in (places, places + 1)
    is_of_registry = body["revRegDefId"] == registry_id and has_places
    if not is_of_registry:
        raise Refused("resource_refused", link.resource_id, "list_of_another_registry")
    if body.get("timestamp", link.timestamp) != link.timestamp:
        raise Refused("resource_refused", link.resource_id, "another_time")
    return {**body, "timestamp": link.timestamp}
