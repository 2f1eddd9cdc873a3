"""Logs and resources of did:webvh that other implementations wrote."""

import hashlib
import json
import random
from functools import cache
from typing import Any

from credentials.ledgers.webvh import encoding
from tests.support.paths import ROOT
from wallets import keys

FIXTURES = ROOT / "tests" / "fixtures"


@cache
def vectors() -> dict[str, Any]:
    """Logs and resources, good and bad, each with the verdict of a strict reader."""
    return json.loads((FIXTURES / "webvh_vectors.json").read_text())


@cache
def made_by_credo() -> dict[str, Any]:
    """A DID of Credo 0.6.3, its log and a schema."""
    return json.loads((FIXTURES / "webvh_made_by_credo.json").read_text())


def to_bytes(log: list[dict[str, Any]]) -> bytes:
    """A log as it is served: an entry on each line."""
    lines = (json.dumps(entry, separators=(",", ":")) for entry in log)
    return "".join(f"{line}\n" for line in lines).encode()


def seed(name: str) -> bytes:
    """The seed of a key of the vectors."""
    return hashlib.sha256(f"agency webvh vector: {name}".encode()).digest()


def change_somewhere(document: Any, chance: random.Random) -> None:
    """Change one place of a JSON document: a value, the name of a member, a list."""
    place = document
    while True:
        names = list(place) if isinstance(place, dict) else list(range(len(place)))
        name = chance.choice(names)
        inner = place[name]
        if not inner or not isinstance(inner, dict | list) or chance.random() < 0.1:
            break
        place = inner
    kind = chance.randrange(4)
    if kind == 0:
        del place[name]
    elif kind == 1 and isinstance(place, dict):
        place[f"{name}x"] = place.pop(name)
    elif kind == 2 and isinstance(place, dict):
        place["added"] = chance.choice(STRANGE_VALUES)
    else:
        place[name] = _another(inner, chance)


STRANGE_VALUES: list[Any] = [None, True, 0, -1, 2**53, 0.5, "", "x", [], {}, [[]]]


def _another(value: Any, chance: random.Random) -> Any:
    """Another value: a character changed, a number moved, or a value of any type."""
    if isinstance(value, str) and value and chance.random() < 0.7:
        at = chance.randrange(len(value))
        other = "1" if value[at] != "1" else "2"
        return value[:at] + other + value[at + 1 :]
    others = [one for one in STRANGE_VALUES if json.dumps(one) != json.dumps(value)]
    return chance.choice(others)


def next_entry(changes: dict[str, Any]) -> dict[str, Any]:
    """An entry after the log of the vectors that is right but for what is changed."""
    log = vectors()["log"]
    signer = seed("issuers:demo update 2")
    key = multikey("issuers:demo update 2")
    entry = {
        "versionTime": "2026-01-05T09:00:02Z",
        "parameters": {"updateKeys": [key], "nextKeyHashes": []},
        "state": log[-1]["state"],
    } | changes
    last = log[-1]["versionId"]
    entry["versionId"] = encoding.version_id_of(entry, len(log) + 1, last)
    method = encoding.did_key_id(key)
    proof = encoding.make_proof(entry, signer, method, "2026-01-05T09:00:02Z")
    return entry | {"proof": [proof]}


def multikey(name: str) -> str:
    return encoding.multikey_of(keys.verkey_of(seed(name)))


def signed_again(
    resource: dict[str, Any], by: str = "issuers:demo assertion 0"
) -> dict[str, Any]:
    """A resource of the vectors with a new proof. by: the name of its key."""
    method = f"{vectors()['did']}#{multikey(by)}"
    proof = encoding.make_proof(resource, seed(by), method, "2026-01-05T09:00:02Z")
    return resource | {"proof": proof}


def rotated() -> tuple[dict[str, Any], dict[str, Any]]:
    """An entry with another assertion key alone, and the definition signed by it."""
    did, name = vectors()["did"], "issuers:demo assertion 1"
    key_id = f"{did}#{multikey(name)}"
    method = {
        "id": key_id,
        "type": "Multikey",
        "controller": did,
        "publicKeyMultibase": multikey(name),
    }
    state = {"id": did, "verificationMethod": [method], "assertionMethod": [key_id]}
    return next_entry({"state": state}), signed_again(vectors()["resources"][1], name)


def with_service(endpoint: str) -> dict[str, Any]:
    """An entry whose document has an endpoint for messages."""
    state = vectors()["log"][-1]["state"]
    service = {
        "id": f"{state['id']}#didcomm",
        "type": "did-communication",
        "recipientKeys": [state["verificationMethod"][0]["id"]],
        "serviceEndpoint": endpoint,
    }
    return next_entry({"state": state | {"service": [service]}})
