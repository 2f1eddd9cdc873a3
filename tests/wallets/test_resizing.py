"""A spare key serves definitions of any size, as good as keys of the library's own."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from core.errors import Invalid
from tests.fixtures import stored
from tests.support.keys import resize_at_once, stored_spare_key
from tests.support.processes import eventually
from wallets import anoncreds, key_generator
from wallets.anoncreds import Definition, UnusableKey, issuing, resizing

FABER = "Th7MpTaRZVRYnPiabds81Y"
PRIMES = stored("badge").private["value"]["p_key"]
P, Q = int(PRIMES["p"]), int(PRIMES["q"])
NAMES = ["Full Name", "Größe", "LEVEL 2"]


@pytest.fixture
def here(monkeypatch):
    """Keys are resized in this process: to start another one is slow."""

    def run_here(given):
        return resizing.make_primary_key(
            int(given["p"]), int(given["q"]), given["labels"]
        )

    monkeypatch.setattr(issuing, "run_resizing", run_here)


def resize(names, revocable=False, spare=None):
    schema = {"issuerId": FABER, "name": "x", "version": "1.0", "attrNames": names}
    return anoncreds.resize_definition(
        spare or stored_spare_key(), f"{FABER}:2:x:1.0", schema, FABER, "t", revocable
    )


def present(definition, names, value="7"):
    """Return (presentation, request, schema) of a new credential: all and a predicate."""
    schema = {"issuerId": FABER, "name": "x", "version": "1.0", "attrNames": names}
    schema_id, definition_id = f"{FABER}:2:x:1.0", f"{FABER}:3:CL:9:t"
    secret = anoncreds.create_link_secret()
    offer = anoncreds.create_offer(schema_id, definition_id, definition.key_proof)
    asked, metadata = anoncreds.create_request(offer, definition.public, secret, FABER)
    signed = anoncreds.create_credential(
        definition.public,
        definition.private,
        offer,
        asked,
        dict.fromkeys(names, value),
    )
    held = anoncreds.process_credential(signed, metadata, secret, definition.public)
    request = {
        "name": "r",
        "version": "1.0",
        "nonce": anoncreds.generate_nonce(),
        "requested_attributes": {"x": {"name": names[0]}},
        "requested_predicates": {
            "p": {"name": names[-1], "p_type": ">=", "p_value": int(value)}
        },
    }
    known = {schema_id: schema}, {definition_id: definition.public}
    entries = [anoncreds.SubProof(held, {"x": True}, ["p"])]
    presentation = anoncreds.create_presentation(request, entries, {}, secret, *known)
    return presentation, request, *known


@pytest.mark.slow
@pytest.mark.parametrize("names", [["a", "b"], NAMES, [f"a{i}" for i in range(24)]])
def test_a_credential_of_a_resized_key_verifies_with_nothing_but_the_library(names):
    script = (
        "import anoncreds, json, sys\n"
        "p, r, s, d = json.load(sys.stdin)\n"
        "load = anoncreds.Presentation.load(p)\n"
        "print(load.verify(anoncreds.PresentationRequest.load(r), s, d))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        input=json.dumps(present(resize(names), names)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.stdout.strip() == "True", ran.stderr


def test_the_private_part_is_that_of_the_library_and_nothing_more(here):
    spare = stored_spare_key()
    assert resize(["a"], revocable=True).private == spare.private
    assert resize(["a"]).private["value"] == spare.private["value"] | {"r_key": None}
    assert "revocation" not in resize(["a"]).public["value"]


def test_two_keys_of_the_same_primes_share_only_n(here):
    other, one = (
        resize(NAMES).public["value"]["primary"],
        resize(NAMES).public["value"]["primary"],
    )
    shared = {name for name in one if one[name] == other[name]}
    assert shared == {"n"} and not set(one["r"].values()) & set(other["r"].values())


def test_the_generator_generates_the_whole_subgroup():
    primes = resizing.SafePrimes(P, Q)
    square = primes.random_generator()
    assert pow(square, P * Q, primes.n) == 1
    assert 1 not in (square, pow(square, P, primes.n), pow(square, Q, primes.n))
    of_one_order_only = pow(4, P, primes.n)
    with mock.patch.object(resizing.secrets, "randbelow") as drawn:
        drawn.side_effect = [math.isqrt(1), *[5] * 3, 6]
        assert primes.random_generator() not in (1, of_one_order_only)


def test_the_proof_shows_nothing_of_the_exponents():
    """Masks are 384 bits longer than p'q', and the exponents are from [2, p'q' - 2]."""
    primes = resizing.SafePrimes(P, Q)
    bits = (P * Q).bit_length()
    masks = [primes.random_mask().bit_length() for _ in range(50)]
    assert bits + 350 < max(masks) <= bits + 384
    with mock.patch.object(resizing.secrets, "randbelow", lambda end: end - 1):
        assert primes.random_exponent() == P * Q - 2
    with mock.patch.object(resizing.secrets, "randbelow", lambda end: 0):
        assert primes.random_exponent() == 2


def test_a_wrong_half_is_noticed_before_anything_is_shown(monkeypatch):
    power, wrong = resizing.SafePrimes.power, []

    def fails_later(self, base, exponent):
        wrong.append(1)
        return power(self, base, exponent) + (self.first if len(wrong) > 2 else 0)

    monkeypatch.setattr(resizing.SafePrimes, "power", fails_later)
    with pytest.raises(ArithmeticError):
        resizing.make_primary_key(P, Q, ["master_secret", "a"])


@pytest.mark.parametrize("part", ["c", "xz_cap", "xr_cap"])
def test_a_key_whose_proof_does_not_hold_is_not_used(monkeypatch, part):
    def changed(given):
        found = resize_at_once(given)
        proof = found["key_proof"]
        if part == "xr_cap":
            proof[part][1][1] = str(int(proof[part][1][1]) + 1)
        else:
            proof[part] = str(int(proof[part]) + 1)
        return found

    monkeypatch.setattr(issuing, "run_resizing", changed)
    with pytest.raises(Invalid) as found:
        resize(["a", "b"])
    assert found.value.__context__ is None and found.value.code == "invalid_definition"


def test_a_spare_key_that_does_not_fit_together_is_not_used():
    spare = stored_spare_key()
    spare.public["value"]["primary"]["n"] = stored("degree").public["value"]["primary"][
        "n"
    ]
    with pytest.raises(UnusableKey):
        resize(["a"], spare=spare)
    spare.private["value"]["p_key"]["p"] = str(P + 1)
    with pytest.raises(UnusableKey):
        resize(["a"], spare=spare)


@pytest.mark.slow
def test_the_program_prints_no_exponents_when_it_fails():
    given = json.dumps({"p": str(P + 1), "q": str(Q), "labels": ["a"]})
    ran = subprocess.run(
        [sys.executable, "-I", "-S", issuing.RESIZING],
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode and not ran.stdout and "line" not in ran.stderr


@pytest.mark.slow
@pytest.mark.parametrize("program", [issuing.RESIZING, key_generator.PROGRAM])
def test_no_program_leaves_a_core_dump(program):
    command = ["prlimit", "--core=1000000:1000000", sys.executable, "-P", program]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    ) as process:
        try:
            limits = Path(f"/proc/{process.pid}/limits")
            eventually(
                lambda: re.search("Max core file size +0 +0", limits.read_text())
            )
        finally:
            process.kill()


@pytest.mark.slow
def test_a_generated_key_serves_any_number_of_attributes():
    """The one test that generates a key: primes of 1,024 bits, unlike those of others."""
    with mock.patch.object(key_generator, "waiting_requests"):  # always somebody
        spare = Definition(**key_generator.run_generator(lambda: None))
    assert set(spare.public["value"]["primary"]["r"]) == {"master_secret", "a0"}
    assert int(spare.public["value"]["primary"]["n"]).bit_length() >= 2048
    names = [f"a{number}" for number in range(125)]
    presentation, request, schemas, definitions = present(
        resize(names, spare=spare), names
    )
    assert anoncreds.verify_presentation(presentation, request, schemas, definitions)
