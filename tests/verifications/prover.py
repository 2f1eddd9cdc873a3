"""A prover that keeps to no rule but the library's equations: what a forger can write at home."""

import secrets
from hashlib import sha256
from typing import NamedTuple

from tests.fixtures import ALICE_LINK_SECRET, Stored
from wallets.anoncreds import encode

E_START = 2**596


class Signature(NamedTuple):
    a: int
    e: int
    v: int
    m2: int


def signature_of(credential: dict) -> Signature:
    """The issuer's, as the holder stores it."""
    parts = credential["signature"]["p_credential"]
    return Signature(int(parts["a"]), int(parts["e"]), int(parts["v"]), int(parts["m_2"]))


def signature_without_issuer(definition: Stored, values: dict[str, str]) -> Signature:
    """Solves the signature's equation for e = 1, which takes nothing but the public key."""
    key, v, m2 = _key(definition), secrets.randbits(2700), secrets.randbits(256)
    product = _product(key, _messages(values), v, m2)
    return Signature(key["z"] * pow(product, -1, key["n"]) % key["n"], 1, v, m2)


def prove(
    definition: Stored, request: dict, values: dict[str, str], signed: Signature, bind: bool = True
) -> dict:
    """Shows every attribute the request names. bind: whether A' goes into the challenge."""
    key, messages = _key(definition), _messages(values)
    names = {one["name"]: referent for referent, one in request["requested_attributes"].items()}
    hidden = {label: secrets.randbits(592) for label in messages if label not in names}
    blind = Signature(0, secrets.randbits(455 if signed.e > 1 else 1000), secrets.randbits(3060), 7)
    first = pow(signed.a, blind.e, key["n"]) * _product(key, hidden, blind.v, blind.m2) % key["n"]
    hashed = [_bytes(signed.a)] if bind else []
    nonce = _bytes(int(request["nonce"]))
    challenge = int.from_bytes(sha256(b"".join([_bytes(first), *hashed, nonce])).digest(), "big")
    equality = {
        "revealed_attrs": {label: str(messages[label]) for label in names},
        "a_prime": str(signed.a),
        "e": str(blind.e + challenge * (signed.e - E_START)),
        "v": str(blind.v + challenge * signed.v),
        "m": {label: str(hidden[label] + challenge * messages[label]) for label in hidden},
        "m2": str(blind.m2 + challenge * signed.m2),
    }
    aggregated = {"c_hash": str(challenge), "c_list": [list(one) for one in hashed]}
    shown = {referent: values[name] for name, referent in names.items()}
    return _presentation(definition, equality, aggregated, shown)


def _presentation(
    definition: Stored, equality: dict, aggregated: dict, shown: dict[str, str]
) -> dict:
    primary = {"eq_proof": equality, "ge_proofs": []}
    proofs = [{"primary_proof": primary, "non_revoc_proof": None}]
    revealed = {
        referent: {"sub_proof_index": 0, "raw": raw, "encoded": encode(raw)}
        for referent, raw in shown.items()
    }
    requested = {"self_attested_attrs": {}, "unrevealed_attrs": {}, "predicates": {}}
    ids = {"schema_id": definition.schema_id, "cred_def_id": definition.definition_id}
    return {
        "proof": {"proofs": proofs, "aggregated_proof": aggregated},
        "requested_proof": {"revealed_attrs": revealed} | requested,
        "identifiers": [ids | {"rev_reg_id": None, "timestamp": None}],
    }


def _key(definition: Stored) -> dict:
    primary = definition.public["value"]["primary"]
    numbers = {name: int(primary[name]) for name in ("n", "s", "z", "rctxt")}
    return numbers | {"r": {label: int(number) for label, number in primary["r"].items()}}


def _messages(values: dict[str, str]) -> dict[str, int]:
    signed = {name: int(encode(raw)) for name, raw in values.items()}
    return signed | {"master_secret": int(ALICE_LINK_SECRET)}


def _product(key: dict, messages: dict[str, int], v: int, m2: int) -> int:
    product = pow(key["s"], v, key["n"]) * pow(key["rctxt"], m2, key["n"])
    for label, message in messages.items():
        product = product * pow(key["r"][label], message, key["n"]) % key["n"]
    return product


def _bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
