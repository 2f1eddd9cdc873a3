"""Judge answers by the OpenAPI document."""

import json
import re
import sys

# For the formats of IRIs, which nothing checks here, jsonschema would load it, and it
# makes 38 parsers at once: two seconds in each process that collects tests.
sys.modules.setdefault("rfc3987_syntax", None)
from jsonschema import Draft202012Validator  # noqa: E402

from core.api.dialects import DIFFERENCES  # noqa: E402

# Answered in both spellings, as `proofRequest` says.
OPEN = {"ProofRequest", "ProofAttributeInfo", "ProofPredicateInfo", "AttributeFilter"}
# How a complaint begins, by the schema of which an answer in the other dialect differs.
OF_THE_OTHER_DIALECT = {
    "AgentEndpoint": r"\$(\[\d+\])?\.endpoint\.verkey: \[",
    "AvailableCredentials": r"\$: \[.* is not of type 'object'",
}


def closed(schemas):
    """The schemas, whose objects have no members that the document does not name."""
    return {
        name: shape
        if name in OPEN or "properties" not in shape
        else {"additionalProperties": False} | shape
        for name, shape in schemas.items()
    }


def complaints(document, operation, response):
    """What in the JSON answer is not as documented, as `endpoint.verkey: ...`."""
    described = operation["responses"].get(str(response.status_code))
    if described is None:
        return [f"{response.status_code} is not documented"]
    media_type, _, _ = response.headers.get("Content-Type", "").partition(";")
    content = described.get("content", {})
    if not content and not response.streaming and not response.content:
        return []
    if media_type not in content:
        return [f"{media_type or 'no body'}, not {' or '.join(content) or 'no body'}"]
    if media_type != "application/json":
        return []
    schema = content[media_type]["schema"]
    return errors_in(document, schema, json.loads(response.content))


def errors_in(document, schema, value):
    """How the value differs from a schema of the document."""
    shapes = {"schemas": closed(document["components"]["schemas"])}
    errors = Draft202012Validator(schema | {"components": shapes}).iter_errors(value)
    return [f"{error.json_path}: {error.message}" for error in errors]


def difference(operation, complaint):
    """The schema by which the complaint is one of the other dialect, if it is.

    The operation must say so.
    """
    for name, beginning in OF_THE_OTHER_DIALECT.items():
        says_so = DIFFERENCES[name] in operation["description"]
        if says_so and re.match(beginning, complaint):
            return name
    return None


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation
