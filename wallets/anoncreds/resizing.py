"""Make the key of a definition from the primes of a spare key: a program of its own.

Only the two safe primes of a key take seconds to find; all else is made anew here, for
any number of attributes, in 65 ms (2 attributes) to 1.5 s (125). Source: the
construction of the AnonCreds specification ("Generating a Credential Definition"),
and `new_credential_key_correctness_proof` of anoncreds-clsignatures.

It is a program because Python's integers hold the interpreter's lock while they
compute, so the other threads of a web process would stand still. And whoever learns
the exponents forges credentials: they exist in this process only, which prints no
traceback and leaves no core dump.

stdin: {"p", "q": p' and q' as decimals, "labels": [...]}
stdout: {"primary": {...}, "key_proof": {...}}

It imports nothing of the project.
"""

import hashlib
import json
import os
import resource
import secrets
import sys
from typing import Any

# By so much a mask is longer than the product p'q'. The proof publishes c·x + mask; c
# has 256 bits, and with 128 more nothing of x can be read from the sum. The library's
# masks are as short as x, which shows the highest 256 bits of it.
MASK_BITS = 256 + 128


class SafePrimes:
    """The factors P = 2p' + 1 and Q = 2q' + 1 of n."""

    def __init__(self, p: int, q: int) -> None:
        self.p, self.q = p, q
        self.first, self.second = 2 * p + 1, 2 * q + 1
        self.n = self.first * self.second
        self.inverse = pow(self.second, -1, self.first)

    def power(self, base: int, exponent: int) -> int:
        """Return base^exponent modulo n, four times faster than pow() does."""
        a = pow(base % self.first, exponent % (self.first - 1), self.first)
        b = pow(base % self.second, exponent % (self.second - 1), self.second)
        return b + self.second * ((a - b) * self.inverse % self.first)

    def random_generator(self) -> int:
        """Return a square that generates the subgroup of order p'q'."""
        while True:
            square = pow(secrets.randbelow(self.n - 3) + 2, 2, self.n)
            if self.power(square, self.p) != 1 and self.power(square, self.q) != 1:
                return square

    def random_exponent(self) -> int:
        """Return a number from 2 to p'q' - 2."""
        return secrets.randbelow(self.p * self.q - 3) + 2

    def random_mask(self) -> int:
        return secrets.randbits((self.p * self.q).bit_length() + MASK_BITS)


def make_primary_key(p: int, q: int, labels: list[str]) -> dict[str, Any]:
    """Return the public primary key for these labels, and its correctness proof.

    p, q: p' and q'. labels: the attributes and "master_secret", as the library
    compares them. ArithmeticError if a power came out wrong, as on a broken processor:
    a result that is right modulo one prime only would publish the other one.
    """
    primes = SafePrimes(p, q)
    generator = primes.random_generator()
    exponents = [primes.random_exponent() for _ in ["z", *labels]]
    masks = [primes.random_mask() for _ in exponents]
    powers = [primes.power(generator, x) for x in exponents]
    for x, power in list(zip(exponents, powers, strict=True))[:2]:  # Z and one R
        if pow(generator, x, primes.n) != power:
            raise ArithmeticError("a power modulo n is wrong")
    masked = [primes.power(generator, mask) for mask in masks]
    text = b"".join(map(to_bytes, powers + masked))
    challenge = int.from_bytes(hashlib.sha256(text).digest(), "big")
    z_cap, *r_caps = (
        str(challenge * x + mask) for x, mask in zip(exponents, masks, strict=True)
    )
    z, *r = map(str, powers)
    return {
        "primary": {
            "n": str(primes.n),
            "s": str(generator),
            "r": dict(zip(labels, r, strict=True)),
            "rctxt": str(primes.power(generator, primes.random_exponent())),
            "z": z,
        },
        "key_proof": {
            "c": str(challenge),
            "xz_cap": z_cap,
            "xr_cap": [list(pair) for pair in zip(labels, r_caps, strict=True)],
        },
    }


def to_bytes(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")


def main() -> None:
    sys.tracebacklimit = 0
    os.nice(10)  # the quick calls of others come first
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    given = json.load(sys.stdin)
    made = make_primary_key(int(given["p"]), int(given["q"]), given["labels"])
    json.dump(made, sys.stdout)


if __name__ == "__main__":
    main()
