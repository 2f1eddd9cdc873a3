"""Generate a spare key and print it as JSON: a program of its own.

It takes 1.6 to 15 seconds of a processor. The process that started it may lower its
priority, end it at any time, and hold its stdin: when that is closed, as by `kill -9`,
the program ends.

stdout: {"public", "private", "key_proof"}, for one attribute, with revocation.

It imports nothing of the project.
"""

import json
import os
import resource
import sys
from threading import Thread
from typing import Any

import anoncreds

ISSUER = "1" * 22  # a placeholder for the issuer's DID
NAMES = ("public", "private", "key_proof")


def end_with_parent() -> None:
    sys.stdin.read()
    os._exit(1)


def generate(
    schema_id: str,
    schema: dict[str, str | list[str]],
    issuer_id: str,
    tag: str,
    support_revocation: bool,
) -> dict[str, Any]:
    """Return a definition with a new key: {"public", "private", "key_proof"}.

    schema: {"issuerId", "name", "version", "attrNames"}.
    """
    parts = anoncreds.CredentialDefinition.create(
        schema_id, schema, issuer_id, tag, "CL", support_revocation=support_revocation
    )
    values = (part.to_dict() for part in parts)
    return dict(zip(NAMES, values, strict=True))


def main() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it would hold the primes
    Thread(target=end_with_parent, daemon=True).start()
    schema_id = f"{ISSUER}:2:spare:1"
    schema: dict[str, str | list[str]] = {
        "issuerId": ISSUER,
        "name": "spare",
        "version": "1",
        "attrNames": ["a0"],
    }
    print(json.dumps(generate(schema_id, schema, ISSUER, "spare", True)), flush=True)


if __name__ == "__main__":
    main()
