"""The OpenAPI schema: each operation once, under the interface's own path."""

import re

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.plumbing import get_lib_doc_excludes

from agency.api.dialects import DIFFERENCES, LITERAL_HEADER, WALLET_PREFIXES
from agency.api.exceptions import CODES
from agency.api.openapi import descriptions, examples
from agency.api.serializers import Contract, Parameters
from agency.api.views import MISSING_SCOPE, View
from tenants import idempotency
from tenants.models import Scope

ALIAS_PREFIXES = re.compile(
    r"^/(agency|credentials|wallet|management)/v1/|^/custodian/(?!v1/)|^/api/"
)
ALIASES = (
    "/definition/schemas",
    "/custodian/v1/health",
    "/custodian/v1/api/health",
    "/custodian/v1/",
    "/provider/v1/health",
    "/custodian/v1/api/{walletId}/presentations/connection/{connectionId}",
    "/custodian/v1/api/{walletId}/verification/{verificationId}",
)
ERROR = {
    "type": "object",
    "required": ["code", "message"],
    "properties": {
        "code": {"type": "string", "description": "Stable; see docs/errors.md."},
        "message": {"type": "string", "description": "What is wrong and what to do."},
        "errors": {
            "type": "object",
            "additionalProperties": {"type": "array", "items": {"type": "string"}},
            "description": "Sentences by field.",
        },
        "requestId": {
            "type": "string",
            "description": "The `X-Request-Id` of the response.",
        },
        "documentationUrl": {
            "type": "string",
            "format": "uri",
            "description": "The page of all codes, at this one.",
        },
    },
}
ERROR_EXAMPLES = {
    400: ("invalid_request", "version: It is missing."),
    401: (
        "unauthorized",
        "The access token or the subscription key is missing or wrong.",
    ),
    404: ("not_found", "There is no such credential in your organization."),
    409: (
        "wrong_state",
        "The credential is Issued; this needs Requested. Read it again.",
    ),
    408: ("body_timeout", "The body did not arrive in time. Send it again, faster."),
    413: ("body_too_large", "The body is larger than 262144 bytes. Send less."),
    422: ("idempotency_key_reused", "This Idempotency-Key came with another request."),
    429: (
        "too_many_at_once",
        "Too many of your calls are at work. Send this one again later.",
    ),
    503: ("not_ready", "Not ready: database."),
}
STREAM_EXAMPLES = {
    421: (
        "stream_elsewhere",
        "The stream of events is served at …, by a process of its own.",
    ),
    429: ("too_many_listeners", "50 listeners of your organization are connected."),
    503: ("stream_full", "Too many listen already. Try again in a while."),
}
KEY_NOT_READY = {
    "code": "key_not_ready",
    "message": "The key of this definition is being made. Send the request again in "
    "4 seconds.",
}
OPERATIONS_WITH_KEY = {  # operations that may make a definition
    "createCredentialDefinition",
    "createCredentialDefinitionForSchemaId",
    "setUpSamples",
}
QUOTA_EXCEEDED = (
    "This organization may have 1000 wallets (QUOTA_WALLETS). Delete some, or ask "
    "whoever runs this service for more."
)
OPERATIONS_WITH_QUOTA = {  # operations that make what has a quota (tenants/quotas.py)
    "acceptCredential",
    "acceptInvitation",
    "addAsset",
    "createConnection",
    "createCredential",
    "createCredentialDefinition",
    "createCredentialDefinitionForSchemaId",
    "createProviderTenant",
    "createTenant",
    "createVerification",
    "createVerificationFromParameters",
    "createVerificationFromPolicy",
    "createWallet",
    "createWalletConnection",
    "proposeCredential",
    "proposeVerification",
    "requestConnection",
    "requestWalletConnection",
    "sendVerificationFromParameters",
    "sendVerificationFromPolicy",
    "submitVerificationForParameters",
    "submitVerificationFromDataAutoSelect",
    "uploadImage",
}
IDEMPOTENCY_KEY = {
    "name": idempotency.HEADER,
    "in": "header",
    "description": "Sent again with the same key within 24 hours, the request has no second "
    "effect and gets the first answer, with `Idempotency-Replayed: true`. Best a new UUID.",
    "schema": {
        "type": "string",
        "minLength": 1,
        "maxLength": idempotency.MAX_KEY_LENGTH,
    },
}


class TwoKeys(OpenApiAuthenticationExtension):
    target_class = "agency.api.authentication.TenantAuthentication"
    name = ["accessToken", "subscriptionKey"]

    def get_security_definition(self, auto_schema):
        header = {
            "type": "apiKey",
            "in": "header",
            "name": LITERAL_HEADER,
        }
        return [{"type": "http", "scheme": "bearer"}, header]

    def get_security_requirement(self, auto_schema):
        return {name: [] for name in self.name}


class ProviderKey(OpenApiAuthenticationExtension):
    target_class = "agency.api.authentication.ProviderAuthentication"
    name = "providerKey"

    def get_security_definition(self, auto_schema):
        return {"type": "http", "scheme": "bearer"}


def base_classes():
    """Classes whose docstrings speak to readers of the code, not of the document."""
    return [*get_lib_doc_excludes(), *subclasses_of(View), Contract, Parameters]


def subclasses_of(base):
    """The class and all below it."""
    found = [base]
    for one in found:  # grows while it is read: the classes below each class too
        found += one.__subclasses__()
    return found


def one_path_each(endpoints):
    """Show each view once. It answers below the prefix of each kind of client."""
    return [
        endpoint
        for endpoint in endpoints
        if not ALIAS_PREFIXES.match(endpoint[0]) and endpoint[0] not in ALIASES
    ]


def add_errors(result, generator, request, public):
    """Document the one error shape on every operation."""
    result["components"]["schemas"]["Error"] = ERROR
    for path, operations in result["paths"].items():
        for method, operation in operations.items():
            responses = operation["responses"]
            # Each success is a 200: the original clients accept no other.
            for status in ("201", "204"):
                if status in responses:
                    done = {"description": "Done"}
                    responses["200"] = responses.pop(status) | done
            if method.upper() in idempotency.METHODS:
                operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
            declared = [int(status) for status in responses if status >= "400"]
            for status in error_statuses(path, method, operation) + declared:
                responses[str(status)] = error_response(status, path)
            if operation["operationId"] in OPERATIONS_WITH_KEY:
                responses["503"] = describe_error(KEY_NOT_READY)
            if operation["operationId"] in OPERATIONS_WITH_QUOTA:
                quota = {"code": "quota_exceeded", "message": QUOTA_EXCEEDED}
                add_error(responses, "409", quota)
            if scope := operation.get("x-scope"):
                message = MISSING_SCOPE.format(scope=scope)
                status = "409" if path.startswith(WALLET_PREFIXES) else "403"
                missing = {"code": "missing_scope", "message": message}
                add_error(responses, status, missing)
    return result


def add_error(responses, status, error):
    """Document an error, beside the other codes of its status."""
    found = responses.setdefault(status, describe_error(error))
    content = found["content"]["application/json"]
    other = content.pop("example", error)
    if other != error:
        content["examples"] = {other["code"]: {"value": other}}
    if "examples" not in content:
        content["example"] = error
        return
    found["description"] += f" or {error['code']}"
    content["examples"][error["code"]] = {"value": error}


def add_descriptions(result, generator, request, public):
    """Add descriptions to parameters and properties, and examples to required ones.

    In a form each field has an example. The example of a JSON body is one of the
    operation's.
    """
    contracts = {one.__name__: one for one in subclasses_of(Contract)}
    for name, schema in result["components"]["schemas"].items():
        texts = descriptions.PROPERTIES | descriptions.PROPERTIES_OF.get(name, {})
        properties = schema.get("properties", {})
        held = getattr(contracts.get(name), "value_members", ())
        for member, shape in properties.items():
            if member in texts:
                shape.setdefault("description", texts[member])
            if member in held:
                shape["x-scope"] = str(Scope.VALUES)
            if example := examples.BY_FORM_FIELD.get(f"{name}.{member}"):
                properties[member]["example"] = example
    for path, operations in result["paths"].items():
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                name = parameter["name"]
                if text := descriptions.describe_parameter(path, name):
                    parameter.setdefault("description", text)
                example = examples.find_parameter_example(
                    path, operation["operationId"], name
                )
                if parameter.get("required") and example:
                    parameter.setdefault("example", example)
    return result


def name_differences(result, generator, request, public):
    """Say in each operation what differs without the header of its security scheme."""
    schemas = result["components"]["schemas"]
    for operations in result["paths"].values():
        for operation in operations.values():
            shapes = [operation["responses"]["200"], operation.get("requestBody")]
            found = schemas_in(shapes, schemas)
            texts = [text for name, text in DIFFERENCES.items() if name in found]
            if texts:
                sentence = (
                    f"Without the header `{LITERAL_HEADER}`, {'; '.join(texts)}."
                )
                before = operation.get("description", "")
                operation["description"] = f"{before}\n\n{sentence}".strip()
    return result


def schemas_in(value, schemas):
    """The names of the schemas that a part of the document refers to."""
    found, left = set(), [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            name = str(one.get("$ref", "")).rpartition("/")[2]
            if name and name not in found:
                found.add(name)
                left.append(schemas[name])
            left += one.values()
        elif isinstance(one, list):
            left += one
    return found


def error_statuses(path, method, operation):
    if "Health" in operation["tags"]:
        return [503] if path.endswith(("ready", "status")) else []
    if "Ledger" in operation["tags"]:
        return [400, 404]
    changes = method != "get"
    keyed = method.upper() in idempotency.METHODS
    found = [400, 401] + ([404] if "{" in path or changes else [])
    found += [408, 413] if "requestBody" in operation else []
    found += [429]
    return found + ([409] if changes else []) + ([422] if keyed else [])


def error_response(status, path):
    known = ERROR_EXAMPLES | (STREAM_EXAMPLES if path.endswith("/stream") else {})
    code, message = known.get(status, (CODES.get(status), ""))
    return describe_error({"code": code, "message": message})


def describe_error(example):
    content = {"schema": {"$ref": "#/components/schemas/Error"}, "example": example}
    return {"description": example["code"], "content": {"application/json": content}}
