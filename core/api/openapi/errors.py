"""The errors of each operation in the OpenAPI document: errors.yaml.

    common:                          # what whole groups of operations answer
      body:
        413: {body_too_large: <message>}
    operations:
      createWallet:
        409: {wallet_id_taken: <message>}

A message stands for the body `{code, message}`; an object has all but the code. They
are answers to tests: `python -m tests.measures errors` compares the file with a run
and writes it.
"""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from core.api.openapi.descriptions import SafeLoader

FILE = Path(__file__).with_suffix(".yaml")
# By status and code: the members of the body beside the code.
Errors = dict[int, dict[str, Any]]


@cache
def read_file() -> dict[str, dict[str, Errors]]:
    return yaml.load(FILE.read_text(encoding="utf-8"), SafeLoader)


def groups_of(operation: dict[str, Any], has_key: bool) -> list[str]:
    security = {name for one in operation.get("security", []) for name in one}
    groups = {
        "caller": bool(security),
        "organization": "accessToken" in security,
        "body": "requestBody" in operation,
        "list": "cursor" in (one["name"] for one in operation.get("parameters", [])),
        "key": has_key,
    }
    return [name for name, belongs in groups.items() if belongs]


def errors_of(operation: dict[str, Any], has_key: bool) -> Errors:
    """What the operation may answer. has_key: whether it takes an Idempotency-Key."""
    file = read_file()
    parts = [file["common"][name] for name in groups_of(operation, has_key)]
    parts.append(file["operations"].get(operation["operationId"], {}))
    found: Errors = {}
    for part in parts:
        for status, bodies in part.items():
            shown = found.setdefault(status, {})
            for code, body in bodies.items():
                shown[code] = {"message": body} if isinstance(body, str) else body
    return found
