"""Compare the errors that tests got with those that the OpenAPI document names.

`make errors`, or `python -m tests.measures errors FOLDER`, fails for a code that an
operation answered and the document does not name there, and for one that it names and
no test got, unless untested_errors.yaml says why. With `--write` it adds the first to
core/api/openapi/errors.yaml.
FOLDER: of tests/support/recorded_errors.py.
"""

import json
import sys
from pathlib import Path
from typing import Any

import yaml
from drf_spectacular.generators import SchemaGenerator

from core.api.openapi import errors
from tests.support.openapi import operations

Found = dict[tuple[str, int, str], Any]  # operation, status, code -> body
# What no test got, with the reason: by operation and code.
UNTESTED = Path(__file__).with_name("untested_errors.yaml")
ANY = "any operation"
# A fault of ours, which tests bring about: no operation has it.
OURS = "internal_error"
# Its status depends on the prefix of the path, of which the document has one.
BY_PREFIX = "missing_scope"


def main(arguments: list[str]) -> int:
    folder, *options = arguments
    got, named = read_recorded(Path(folder)), read_document()
    if options == ["--write"]:
        write({one: body for one, body in got.items() if one not in named})
        return 0
    untested = yaml.safe_load(UNTESTED.read_text(encoding="utf-8"))
    found = complaints(got, named, read_common(), untested)
    print("\n".join(found) or f"{len(got)} errors are as the document names them.")
    return 1 if found else 0


def complaints(
    got: Found,
    named: Found,
    common: set[tuple[int, str]],
    untested: dict[str, dict[str, str]],
) -> list[str]:
    """What is wrong, a line each. common: where one operation's test is enough."""
    missing = {one for one in named.keys() - got.keys() if one[1:] not in common}
    tested = {(status, code) for _, status, code in got}
    missing |= {(ANY, *one) for one in common - tested}
    allowed = {(name, code) for name, codes in untested.items() for code in codes}
    absent = {(operation, code) for operation, _, code in missing}
    return [
        *(
            f"{operation} answered {status} {code}, which core/api/openapi/errors.yaml "
            f"does not name there: {got[operation, status, code]['message']}"
            for operation, status, code in sorted(got.keys() - named.keys())
        ),
        *(
            f"{operation}: no test got {status} {code}, which the document names."
            for operation, status, code in sorted(missing)
            if (operation, code) not in allowed
        ),
        *(
            f"{operation}: {code} is in {UNTESTED.name}, but a test got it, or the "
            "document does not name it."
            for operation, code in sorted(allowed - absent)
        ),
    ]


def read_recorded(folder: Path) -> Found:
    """The errors that tests got, with the shortest body of each."""
    found: Found = {}
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text().splitlines():
            operation, status, code, body = json.loads(line)
            if code == OURS:
                continue
            body = {name: body[name] for name in ("message", "errors") if name in body}
            one = (operation, 403 if code == BY_PREFIX else status, code)
            found[one] = min(
                found.get(one, body), body, key=lambda body: len(str(body))
            )
    if not found:
        sys.exit(f"No test has recorded an error in {folder}.")
    return found


def read_document() -> Found:
    document = SchemaGenerator().get_schema(request=None, public=True)
    return {
        (
            operation["operationId"],
            403 if code == BY_PREFIX else int(status),
            code,
        ): one["value"]
        for *_, operation in operations(document)
        for status, response in operation["responses"].items()
        if status >= "400"
        for code, one in response["content"]["application/json"]["examples"].items()
    }


def read_common() -> set[tuple[int, str]]:
    """What whole groups answer by the same code: a test of one operation is enough."""
    return {(403, BY_PREFIX)} | {
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
