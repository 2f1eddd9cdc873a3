"""Compare the errors that tests got with those that the OpenAPI document names.

`python -m tests.measures errors FOLDER` fails for a code that an operation answered
and the document does not name there, and for one that it names and no test got. With
`--write` it adds the first to agency/api/openapi/errors.yaml.
FOLDER: of tests/support/recorded_errors.py.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml
from drf_spectacular.generators import SchemaGenerator

from agency.api.openapi import errors
from tests.support.openapi import operations

Found = dict[tuple[str, int, str], Any]  # operation, status, code -> body
# What is named and no test of this process gets, with the reason.
ELSEWHERE = {
    "body_timeout": "agency/server/web.py answers, before Django",
    "too_many_at_once": "agency/server/web.py answers, before Django",
    "too_many_listeners": "the process of streams answers",
    "stream_full": "the process of streams answers",
}
# A fault of ours, which tests bring about: no operation has it.
OURS = "internal_error"


def main(arguments: list[str]) -> int:
    folder, *options = arguments
    got, named, common = read_recorded(Path(folder)), read_document(), read_common()
    unnamed = {one: body for one, body in got.items() if one not in named}
    got_somewhere = {(status, code) for _, status, code in got}
    missing = {one for one in named.keys() - got.keys() if one[1:] not in common}
    missing |= {("any operation", *one) for one in common - got_somewhere}
    missing = {one for one in missing if one[2] not in ELSEWHERE}
    if options == ["--write"]:
        write(unnamed)
        return 0
    for operation, status, code in sorted(unnamed):
        print(f"{operation} answered {status} {code}: the document does not name it.")
    for operation, status, code in sorted(missing):
        print(f"{operation}: no test got {status} {code}, which the document names.")
    return 1 if unnamed or missing else 0


def read_recorded(folder: Path) -> Found:
    found: Found = {}
    for file in sorted(folder.glob("*.jsonl")):
        for operation, status, code, body in map(
            json.loads, file.read_text().splitlines()
        ):
            if code == OURS:
                continue
            body = {name: body[name] for name in ("message", "errors") if name in body}
            found.setdefault((operation, status, code), body)
    if not found:
        sys.exit(f"No test has recorded an error in {folder}.")
    return found


def read_document() -> Found:
    document = SchemaGenerator().get_schema(request=None, public=True)
    return {
        (operation["operationId"], int(status), code): one["value"]
        for *_, operation in operations(document)
        for status, response in operation["responses"].items()
        if status >= "400"
        for code, one in response["content"]["application/json"]["examples"].items()
    }


def read_common() -> set[tuple[int, str]]:
    """What whole groups answer by the same code: a test of one operation is enough."""
    scopes = {(403, "missing_scope"), (409, "missing_scope")}
    return scopes | {
        (status, code)
        for part in errors.read_file()["common"].values()
        for status, bodies in part.items()
        for code in bodies
    }


def write(unnamed: Found) -> None:
    """Add to errors.yaml what is not named. What no test got is removed by hand."""
    file = errors.read_file()
    texts = file["operations"]
    for (operation, status, code), body in unnamed.items():
        message = body if len(body) > 1 else body["message"]
        texts.setdefault(operation, {}).setdefault(status, {})[code] = message
    file["operations"] = {
        operation: {
            status: dict(sorted(bodies.items()))
            for status, bodies in sorted(statuses.items())
        }
        for operation, statuses in sorted(texts.items())
    }
    text = yaml.safe_dump(file, sort_keys=False, allow_unicode=True, width=100)
    errors.FILE.write_text(text)
