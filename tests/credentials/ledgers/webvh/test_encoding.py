"""The bytes of did:webvh, by the vectors of another implementation."""

import hashlib
import json

import pytest

from core.errors import PeerError
from credentials.ledgers.webvh import encoding
from credentials.ledgers.webvh.refusals import Broken
from tests.support import webvh
from wallets import keys

VECTORS = webvh.vectors()
GIVEN = VECTORS["primitives"]
ENTRY = VECTORS["log"][0]
SEED = bytes.fromhex(GIVEN["updateKeySeedHex"])


def test_a_key_is_written_as_multikey():
    verkey = keys.verkey_of(SEED)
    assert encoding.multikey_of(verkey) == GIVEN["updateKeyMultikey"]
    assert encoding.verkey_of(GIVEN["updateKeyMultikey"]) == verkey


@pytest.mark.parametrize(
    "text", ["", "z", "z6Mk", "6Mk", GIVEN["updateKeyMultikey"] + "\n", "z" + "1" * 500]
)
def test_another_text_is_no_multikey(text):
    with pytest.raises(PeerError):
        encoding.verkey_of(text)


def test_a_next_key_is_announced_by_its_text():
    assert encoding.next_key_hash(GIVEN["nextKeyMultikey"]) == GIVEN["nextKeyHash"]


def test_the_scid_is_the_hash_of_the_first_entry_without_it():
    scid = GIVEN["scid"]
    genesis = json.loads(GIVEN["scidInputJcs"])
    assert encoding.canonical(genesis).decode() == GIVEN["scidInputJcs"]
    assert encoding.scid_of(genesis) == encoding.scid_of(ENTRY, scid) == scid


def test_the_version_id_has_the_hash_of_the_entry():
    assert encoding.version_id_of(ENTRY, 1, GIVEN["scid"]) == GIVEN["versionId"]
    second = VECTORS["log"][1]
    made = encoding.version_id_of(second, 2, GIVEN["versionId"])
    assert made == second["versionId"]


def test_a_proof_is_made_as_the_vector_has_it():
    method = encoding.did_key_id(GIVEN["updateKeyMultikey"])
    [proof] = ENTRY["proof"]
    assert encoding.make_proof(ENTRY, SEED, method, proof["created"]) == proof
    assert proof["proofValue"] == GIVEN["proofValue"]
    hashed = encoding.without(proof, "proofValue"), encoding.without(ENTRY, "proof")
    for value, text, digest in zip(
        hashed, GIVEN["proofInputJcs"], GIVEN["proofHashesHex"], strict=True
    ):
        assert encoding.canonical(value).decode() == text
        assert hashlib.sha256(text.encode()).hexdigest() == digest


def test_a_proof_holds_for_its_document_and_key_alone():
    [proof] = ENTRY["proof"]
    key = GIVEN["updateKeyMultikey"]
    assert encoding.is_proven(ENTRY, proof, key)
    assert not encoding.is_proven(ENTRY | {"state": {}}, proof, key)
    assert not encoding.is_proven(ENTRY, proof, GIVEN["nextKeyMultikey"])
    assert not encoding.is_proven(ENTRY, proof, key + " ")


@pytest.mark.parametrize(
    "change",
    [
        {"type": "Ed25519Signature2020"},
        {"cryptosuite": "eddsa-rdfc-2022"},
        {"proofPurpose": "authentication"},
        {"created": "2026-01-05T09:00:01Z"},
        {"proofValue": GIVEN["proofValue"] + " "},
        {"proofValue": GIVEN["proofValue"][1:]},
        {"proofValue": "z0"},
        {"proofValue": "z" + "1" * 5000},
        {"proofValue": None},
    ],
)
def test_a_changed_proof_does_not_hold(change):
    [proof] = ENTRY["proof"]
    assert not encoding.is_proven(ENTRY, proof | change, GIVEN["updateKeyMultikey"])


def test_the_digest_of_a_resource_is_that_of_its_content():
    schema = VECTORS["resources"][0]
    assert encoding.canonical(schema["content"]).decode() == GIVEN["schemaJcs"]
    made = encoding.resource_digest(schema["content"])
    assert made == GIVEN["schemaDigestMultibase"] == schema["metadata"]["resourceId"]


@pytest.mark.parametrize("value", [{"a": 2**53}, {"a": "\ud800"}, {"a": 1e999}])
def test_what_has_no_canonical_form_is_refused(value):
    with pytest.raises(Broken, match="^not_canonical$"):
        encoding.canonical(value)
