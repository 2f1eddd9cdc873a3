"""Write log entries and resources of did:webvh. No rows, and no network, here.

https://identity.foundation/didwebvh/v1.0/, with pre-rotation: each entry is signed by
the key that the one before announced, and announces the next one.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from credentials.ledgers.webvh import encoding
from wallets import keys

CONTEXTS = [
    "https://www.w3.org/ns/did/v1",
    "https://w3id.org/security/multikey/v1",
]
RESOURCE_CONTEXTS = [
    "https://identity.foundation/did-attested-resources/context/v0.1",
    "https://w3id.org/security/data-integrity/v2",
]
Json = dict[str, Any]


class UpdateKeys(NamedTuple):
    """The seeds of the key that signs an entry, and of the one that it announces.

    following: None ends pre-rotation.
    """

    signer: bytes
    following: bytes | None

    @property
    def parameters(self) -> Json:
        hashes = []
        if self.following:
            hashes.append(encoding.next_key_hash(multikey_of(self.following)))
        return {"updateKeys": [multikey_of(self.signer)], "nextKeyHashes": hashes}


def multikey_of(seed: bytes) -> str:
    return encoding.multikey_of(keys.verkey_of(seed))


def build_document(
    did: str, multikeys: Sequence[str], service: Sequence[Json] = ()
) -> Json:
    """Return the document of a DID. multikeys: that may sign resources, never empty."""
    ids = [f"{did}#{multikey}" for multikey in multikeys]
    methods = [
        {
            "id": name,
            "type": "Multikey",
            "controller": did,
            "publicKeyMultibase": multikey,
        }
        for name, multikey in zip(ids, multikeys, strict=True)
    ]
    document: Json = {
        "@context": CONTEXTS,
        "id": did,
        "verificationMethod": methods,
        "authentication": ids,
        "assertionMethod": ids,
    }
    return document | ({"service": list(service)} if service else {})


def first_entry(
    place: str, moment: datetime, update_keys: UpdateKeys, multikey: str
) -> Json:
    """Return the entry that makes a DID. Its SCID is the hash of it.

    place: of the DID, as `example.org:issuers:ab12cd34`. multikey: the assertion key.
    """
    placeholder = encoding.SCID_PLACEHOLDER
    entry: Json = {
        "versionId": placeholder,
        "versionTime": encoding.format_time(moment),
        "parameters": {
            "method": encoding.METHOD,
            "scid": placeholder,
            **update_keys.parameters,
            "portable": False,
        },
        "state": build_document(f"did:webvh:{placeholder}:{place}", [multikey]),
    }
    scid = encoding.scid_of(entry)
    entry = encoding.replace_text(entry, placeholder, scid)
    return _sign_entry(entry, 1, scid, update_keys.signer)


def next_entry(last: Json, parameters: Json, state: Json, signer: bytes) -> Json:
    """Return the entry that follows. signer: a seed of one of its update keys.

    Its time is now or, if that is not later, a second after the one before.
    """
    before = datetime.fromisoformat(last["versionTime"])
    moment = max(datetime.now(UTC), before + timedelta(seconds=1))
    entry = {
        "versionTime": encoding.format_time(moment),
        "parameters": parameters,
        "state": state,
    }
    number = int(last["versionId"].partition("-")[0]) + 1
    return _sign_entry(entry, number, last["versionId"], signer)


def _sign_entry(entry: Json, number: int, previous: str, signer: bytes) -> Json:
    named = entry | {"versionId": encoding.version_id_of(entry, number, previous)}
    key_id = encoding.did_key_id(multikey_of(signer))
    return named | {
        "proof": [encoding.make_proof(named, signer, key_id, named["versionTime"])]
    }


def write_line(entry: Json) -> str:
    """A log has a line for each entry, each with its end."""
    return to_text(entry) + "\n"


def read_last(log: str) -> Json:
    return json.loads(log.removesuffix("\n").rpartition("\n")[2])


def read_version_ids(log: str) -> set[str]:
    return {json.loads(line)["versionId"] for line in log.splitlines()}


def build_resource(
    did: str, content: Json, kind: str, name: str, links: list[Json] | None = None
) -> Json:
    """Return an attested resource, not signed yet. Its id is made of its content."""
    digest = encoding.resource_digest(content)
    resource: Json = {
        "@context": RESOURCE_CONTEXTS,
        "type": ["AttestedResource"],
        "id": f"{did}/resources/{digest}",
        "content": content,
        "metadata": {
            "resourceId": digest,
            "resourceType": kind,
            "resourceName": name,
        },
    }
    return resource if links is None else resource | {"links": links}


def sign_resource(resource: Json, did: str, seed: bytes) -> Json:
    """Return the resource with a proof of now, in place of an older one."""
    key_id = f"{did}#{multikey_of(seed)}"
    now = encoding.format_time(datetime.now(UTC))
    return resource | {"proof": encoding.make_proof(resource, seed, key_id, now)}


def to_text(document: Json) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))
