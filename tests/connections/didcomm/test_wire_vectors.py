"""Our samples are those of the reference, and each of them is used."""

from pathlib import Path

from tests.core.api.contract import FILE
from tests.fixtures import wire_vectors
from tests.support.tools import without
from wallets import anoncreds, keys

REFERENCE = FILE.with_name("wire_vectors.json")
HERE = Path(wire_vectors.__file__).with_name("wire_vectors.json")


def test_the_samples_are_those_of_the_reference():
    if not REFERENCE.exists():
        without(f"{REFERENCE} is missing (AGENCY_SHARED names its folder).")
    assert HERE.read_text() == REFERENCE.read_text()


def test_the_keys_of_the_samples_have_all_their_names():
    samples = wire_vectors.VECTORS
    for letter, seed in (("A", wire_vectors.SEED_A), ("B", wire_vectors.SEED_B)):
        verkey = keys.verkey_of(seed)
        assert (verkey, keys.did_key_of(verkey)) == (
            samples[f"verkey_{letter}"],
            samples[f"didkey_{letter}"],
        )
    assert keys.did_of(wire_vectors.VERKEY_B) == samples["legacy_did_B"]


def test_values_are_encoded_as_others_encode_them():
    for text, encoded in wire_vectors.VECTORS["anoncreds_encoding"].items():
        if text.startswith("'"):
            assert anoncreds.encode_value(text[1:-1]) == encoded
