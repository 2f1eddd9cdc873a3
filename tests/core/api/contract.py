"""The measured contract of the original clients: operations and schemas.

The file lies beside the checkout, in the folder that AGENCY_SHARED names (default:
../shared).
"""

import json
import os
import re
from typing import NamedTuple

from tests.support.paths import ROOT
from tests.support.tools import without

SHARED = ROOT / os.environ.get("AGENCY_SHARED", "../shared")
FILE = SHARED / "reference" / "contract.json"
PREFIXES = {
    "credentials": ("", "/agency/v1", "/credentials/v1"),
    "wallet": ("", "/custodian/v1", "/custodian", "/wallet/v1"),
    "provider": ("/management/v1", "/provider/v1"),
}
INTERFACE_ONLY = {  # what no client calls; the contract gives no answer
    "PUT /verifications/policy/connections/{connectionId}": "VerificationContract",
    "GET /api/{walletId}/verification/{verificationId}": "VerificationContract",
}
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
PLAIN = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer(int32)": lambda value: type(value) is int and -(2**31) <= value < 2**31,
    "integer(int64)": lambda value: type(value) is int and -(2**63) <= value < 2**63,
    "date-time": lambda value: isinstance(value, str) and TIME.fullmatch(value),
}


class Operation(NamedTuple):
    """An operation.

    `answer`: the type of a 200's body (`[CredentialContract]`, `string`), or None.
    """

    client: str
    method: str
    path: str
    answer: str | None
    known_paths: list[str]

    @property
    def name(self):
        return f"{self.client} {self.method} {self.path}"

    @property
    def paths(self):
        """Below each prefix of its API; the bare `/` is the studio's."""
        return [
            prefix + self.path
            for prefix in PREFIXES[self.client]
            if prefix + self.path != "/"
        ]


def read():
    """The whole contract. Without the file tests are skipped; in CI they fail."""
    if FILE.exists():
        return json.loads(FILE.read_text())
    without(f"The contract is not tested: AGENCY_SHARED names no folder with {FILE}.")


def operation(row):
    method_and_path = f"{row['method']} {row['path']}"
    answer = row["responses"].get("200") or INTERFACE_ONLY.get(method_and_path)
    return Operation(
        row["client"], row["method"], row["path"], answer, row["fullPaths"]
    )


class Judge:
    """Compares responses with one client's schemas.

    Collects errors and the fields seen.
    """

    def __init__(self, schemas):
        self.schemas, self.wrong, self.shown = schemas, [], set()

    def judge(self, kind, value, where):
        if kind in PLAIN:
            self.expect(PLAIN[kind](value), kind, value, where)
        elif kind.startswith("["):
            self.judge_all(kind[1:-1], value, list, where)
        elif kind.startswith("{string:"):
            self.judge_all(kind[len("{string:") : -1], value, dict, where)
        else:
            self.judge_object(kind, value, where)

    def expect(self, is_right, kind, value, where):
        if not is_right:
            self.wrong.append(f"{where} is no {kind}: {value!r:.80}")

    def judge_all(self, kind, value, container, where):
        self.expect(isinstance(value, container), container.__name__, value, where)
        if isinstance(value, container):
            items = value.items() if container is dict else enumerate(value)
            for key, item in items:
                self.judge(kind, item, f"{where}[{key}]")

    def judge_object(self, schema, value, where):
        self.expect(isinstance(value, dict), schema, value, where)
        for name, field in self.schemas[schema]["fields"].items():
            if isinstance(value, dict) and name in value:
                self.shown.add((schema, name))
                self.judge_field(field, value[name], f"{where}.{name}")
            elif field["required"]:
                self.wrong.append(f"{where}.{name} is missing")

    def judge_field(self, field, value, where):
        if "enum" in field:
            self.expect(value in field["enum"], field["type"], value, where)
        else:
            self.judge(field["type"], value, where)

    def fields_of(self, kind):
        """Every (schema, field) that a published client can read in this response."""
        schema = re.sub(r"^\[|^\{string:|[]}]$", "", kind)
        found = set()
        for name, field in self.schemas.get(schema, {"fields": {}})["fields"].items():
            if is_published(field):
                found |= {(schema, name)} | self.fields_of(field["type"])
        return found


def is_published(field):
    """Whether a client knows it; some spellings stand in an old OpenAPI file alone."""
    return not all(
        source.startswith("oas ") for source in field.get("sources", ["every client"])
    )
