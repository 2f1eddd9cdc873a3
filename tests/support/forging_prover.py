"""A prover as a forger can write it, which obeys only the library's equations."""

import secrets
from collections.abc import Iterable, Mapping
from functools import partial
from hashlib import sha256
from math import isqrt
from typing import NamedTuple

from tests.fixtures import ALICE_LINK_SECRET, Stored
from wallets.anoncreds import encode_value, normalise_name

E_START = 2**596
KINDS = {">=": ("GE", 0), ">": ("GT", 1), "<=": ("LE", 0), "<": ("LT", -1)}
ROOTS = ("0", "1", "2", "3")
SECRET = "master_secret"
# A forger has nothing to hide. With such small masks, a proof takes a fifth of the time.
mask_number = partial(secrets.randbits, 128)


class Signature(NamedTuple):
    a: int
    e: int
    v: int
    m2: int


class Part(NamedTuple):
    """One sub-proof: a credential and the referents of the request that it answers.

    lies: predicate referent -> the number to prove, instead of the signed one. It also
    applies to the referent of the bound.
    """

    definition: Stored
    values: dict[str, str]
    signed: Signature
    referents: Iterable[str]
    lies: Mapping[str, int] = {}
    link_secret: str = ALICE_LINK_SECRET


def signature_of(credential: dict) -> Signature:
    """Return the issuer's signature in a stored credential."""
    parts = credential["signature"]["p_credential"]
    return Signature(*(int(parts[name]) for name in ("a", "e", "v", "m_2")))


def signature_without_issuer(definition: Stored, values: dict[str, str]) -> Signature:
    """Solve the signature's equation for e = 1. This needs only the public key."""
    key, v, m2 = _key(definition), secrets.randbits(2700), secrets.randbits(256)
    product = _product(key, _messages(values, ALICE_LINK_SECRET), v, m2)
    return Signature(key["z"] * pow(product, -1, key["n"]) % key["n"], 1, v, m2)


def prove(request: dict, *parts: Part, bind: bool = True) -> dict:
    """Create a presentation of all attributes and predicates of each part's referents.

    bind: whether the challenge covers the commitments.
    """
    linked = {part.link_secret: mask_number() for part in parts}
    drafts = [_Draft(request, part, linked[part.link_secret]) for part in parts]
    proven = [number for draft in drafts for number in draft.proven]
    bound = drafts if bind else []
    hashed = [number for draft in bound for number in draft.commitments]
    numbers = [*proven, *hashed, int(request["nonce"])]
    challenge = int.from_bytes(sha256(b"".join(map(_bytes, numbers))).digest(), "big")
    aggregated = {
        "c_hash": str(challenge),
        "c_list": [list(_bytes(one)) for one in hashed],
    }
    return {
        "proof": {
            "proofs": [draft.answer(challenge) for draft in drafts],
            "aggregated_proof": aggregated,
        },
        "requested_proof": _requested(request, parts),
        "identifiers": [_identifier(part.definition) for part in parts],
    }


class _Draft:
    """A sub-proof before its challenge.

    proven: the numbers that the verifier computes again (T, tau). A response is its
    mask plus challenge times its secret.
    """

    def __init__(self, request: dict, part: Part, linked: int):
        self.part, self.key = part, _key(part.definition)
        self.messages = _messages(part.values, part.link_secret)
        self.shown = {
            normalise_name(name)
            for referent in part.referents
            for name in _names(request["requested_attributes"].get(referent, {}))
        }
        self.masks = {name: mask_number() for name in self.messages.keys() - self.shown}
        self.masks |= {SECRET: linked}
        self.lied: dict[tuple[str, int], int] = {}
        exponent = secrets.randbits(455 if part.signed.e > 1 else 1000)
        self.blind = Signature(0, exponent, mask_number(), mask_number())
        compared = request["requested_predicates"]
        self.ranges = [
            self._range(compared[referent], _lie(part, referent))
            for referent in part.referents
            if referent in compared
        ]

    def _range(self, asked: dict, lie: int | None) -> "_Range":
        """Prove a comparison.

        For a lie about a shown attribute, the response is put into `m`, where the
        library does not check it.
        """
        label = normalise_name(asked["name"])
        if lie is None:
            return _Range(self.key, asked, self.messages[label], self.masks[label])
        mask = self.lied.setdefault((label, lie), mask_number())
        if label in self.shown:
            self.messages[label], self.masks[label] = lie, mask
        return _Range(self.key, asked, lie, mask)

    @property
    def proven(self) -> list[int]:
        n, masks = self.key["n"], self.masks
        hidden = {name: masks[name] for name in masks.keys() - self.shown}
        product = _product(self.key, hidden, self.blind.v, self.blind.m2)
        first = product * pow(self.part.signed.a, self.blind.e, n) % n
        return [first, *(number for one in self.ranges for number in one.proven)]

    @property
    def commitments(self) -> list[int]:
        ranges = [number for one in self.ranges for number in one.commitments.values()]
        return [self.part.signed.a, *ranges]

    def answer(self, challenge: int) -> dict:
        signed, blind = self.part.signed, self.blind
        values = _messages(self.part.values, self.part.link_secret)
        equality = {
            "revealed_attrs": {label: str(values[label]) for label in self.shown},
            "a_prime": str(signed.a),
            "e": str(blind.e + challenge * (signed.e - E_START)),
            "v": str(blind.v + challenge * signed.v),
            "m": {
                label: str(mask + challenge * self.messages[label])
                for label, mask in self.masks.items()
            },
            "m2": str(blind.m2 + challenge * signed.m2),
        }
        ranges = [one.answer(challenge) for one in self.ranges]
        return {
            "primary_proof": {"eq_proof": equality, "ge_proofs": ranges},
            "non_revoc_proof": None,
        }


class _Range:
    """The proof of a comparison: the difference is a sum of four squares."""

    def __init__(self, key: dict, asked: dict, number: int, mask: int):
        self.key, self.asked, self.number, self.mask = key, asked, number, mask
        self.kind, step = KINDS[asked["p_type"]]
        self.sign = 1 if self.kind in ("GE", "GT") else -1
        difference = self.sign * (number - asked["p_value"] - step)
        roots = dict(zip(ROOTS, four_squares(difference), strict=True))
        self.roots = roots
        numbers = roots | {"DELTA": difference}
        self.blinds = {name: mask_number() for name in numbers}
        self.commitments = {
            name: self._commit(numbers[name], self.blinds[name]) for name in numbers
        }
        self.root_masks = {name: mask_number() for name in ROOTS}
        self.blind_masks = {name: mask_number() for name in self.blinds}
        self.alpha_mask = mask_number()

    def _commit(self, number: int, blind: int) -> int:
        n = self.key["n"]
        return pow(self.key["z"], number, n) * pow(self.key["s"], blind, n) % n

    @property
    def proven(self) -> list[int]:
        n, masks, blinds = self.key["n"], self.root_masks, self.blind_masks
        product = pow(self.key["s"], self.alpha_mask, n)
        for name in ROOTS:
            product = product * pow(self.commitments[name], masks[name], n) % n
        squares = [self._commit(masks[name], blinds[name]) for name in ROOTS]
        compared = self._commit(self.mask, self.sign * blinds["DELTA"])
        return [*squares, compared, product]

    def answer(self, challenge: int) -> dict:
        crossed = sum(self.roots[name] * self.blinds[name] for name in ROOTS)
        alpha = self.alpha_mask + challenge * (self.blinds["DELTA"] - crossed)
        said = {"attr_name": normalise_name(self.asked["name"]), "p_type": self.kind}
        return {
            "u": _responses(self.root_masks, self.roots, challenge),
            "r": _responses(self.blind_masks, self.blinds, challenge),
            "mj": str(self.mask + challenge * self.number),
            "alpha": str(alpha),
            "t": {name: str(number) for name, number in self.commitments.items()},
            "predicate": said | {"value": self.asked["p_value"]},
        }


def four_squares(number: int) -> list[int]:
    """Return four roots whose squares add up to a number >= 0 of any size.

    The algorithm is that of Rabin and Shallit (1986).
    """
    if number < 5000:
        return _few_squares(number, 4)
    if number % 4 == 0:
        return [2 * root for root in four_squares(number // 4)]
    while True:
        first, second = (secrets.randbelow(isqrt(number)) for _ in range(2))
        rest = number - first**2 - second**2
        found = _two_squares(rest) if _may_be_prime(rest) else []
        if found:
            return [first, second, *found]


def _may_be_prime(number: int) -> bool:
    """Whether it may be a prime that is 1 modulo 4."""
    is_candidate = number > 5 and number % 4 == 1
    return is_candidate and all(pow(n, number - 1, number) == 1 for n in (2, 3, 5))


def _few_squares(number: int, count: int) -> list[int]:
    """Return the roots of `count` squares by brute force; [] if there are none."""
    if count == 1:
        return [isqrt(number)] if isqrt(number) ** 2 == number else []
    for root in range(isqrt(number), -1, -1):
        if rest := _few_squares(number - root**2, count - 1):
            return [root, *rest]
    return []


def _two_squares(prime: int) -> list[int]:
    """Return the two roots for a prime that is 1 modulo 4 (Hermite and Serret)."""
    candidates = (pow(base, (prime - 1) // 4, prime) for base in range(2, 100))
    root = next(one for one in candidates if one**2 % prime == prime - 1)
    larger, smaller = prime, root
    while smaller**2 > prime:
        larger, smaller = smaller, larger % smaller
    other = isqrt(prime - smaller**2)
    return [smaller, other] if smaller**2 + other**2 == prime else []


def _lie(part: Part, referent: str) -> int | None:
    return part.lies.get(referent, part.lies.get(referent.removesuffix("#bound")))


def _responses(
    masks: dict[str, int], numbers: dict[str, int], challenge: int
) -> dict[str, str]:
    return {name: str(masks[name] + challenge * numbers[name]) for name in masks}


def _requested(request: dict, parts: tuple[Part, ...]) -> dict:
    """Return `requested_proof`: every attribute is shown, those of a group by name."""
    said: dict = {"self_attested_attrs": {}, "unrevealed_attrs": {}, "predicates": {}}
    said |= {"revealed_attrs": {}, "revealed_attr_groups": {}}
    for index, part in enumerate(parts):
        for referent in part.referents:
            place = {"sub_proof_index": index}
            asked = request["requested_attributes"].get(referent)
            if asked is None:
                said["predicates"][referent] = place
                continue
            values = {name: _shown(part.values[name]) for name in _names(asked)}
            if "names" in asked:
                said["revealed_attr_groups"][referent] = place | {"values": values}
            else:
                said["revealed_attrs"][referent] = place | values[asked["name"]]
    return said


def _shown(raw: str) -> dict:
    return {"raw": raw, "encoded": encode_value(raw)}


def _identifier(definition: Stored) -> dict:
    ids = {"schema_id": definition.schema_id, "cred_def_id": definition.definition_id}
    return ids | {"rev_reg_id": None, "timestamp": None}


def _names(asked: dict) -> list[str]:
    return asked.get("names") or [asked["name"]] if asked else []


def _key(definition: Stored) -> dict:
    primary = definition.public["value"]["primary"]
    numbers = {name: int(primary[name]) for name in ("n", "s", "z", "rctxt")}
    bases = {label: int(number) for label, number in primary["r"].items()}
    return numbers | {"r": bases}


def _messages(values: dict[str, str], link_secret: str) -> dict[str, int]:
    known = {normalise_name(name): int(encode_value(values[name])) for name in values}
    return known | {SECRET: int(link_secret)}


def _product(key: dict, messages: dict[str, int], v: int, m2: int) -> int:
    product = pow(key["s"], v, key["n"]) * pow(key["rctxt"], m2, key["n"])
    for label, message in messages.items():
        product = product * pow(key["r"][label], message, key["n"]) % key["n"]
    return product


def _bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
