"""The OpenAPI schema: each operation once, under the interface's own path."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import get_lib_doc_excludes
from rest_framework.request import Request

from core.api.dialects import DIFFERENCES, LITERAL_HEADER, WALLET_PREFIXES
from core.api.openapi import descriptions, examples
from core.api.openapi.error_codes import answered_codes
from core.api.openapi.errors import errors_of
from core.api.serializers import Contract, Parameters
from core.api.views import MISSING_SCOPE, View
from tenants import idempotency
from tenants.models import Scope

Class = TypeVar("Class")
# Of drf-spectacular: the path, a regular expression of it, the method, the view.
Endpoint = tuple[str, str, str, Callable[..., Any]]
Schema = dict[str, Any]  # a part of the document
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
        "code": {"$ref": "#/components/schemas/ErrorCode"},
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
# How generated clients may call values that are no words.
PREDICATE_NAMES = {
    ">=": "AT_LEAST", ">": "MORE_THAN", "<=": "AT_MOST", "<": "LESS_THAN",
    "==": "EQUAL",
}  # fmt: skip
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
    target_class = "core.api.authentication.TenantAuthentication"
    name = ["accessToken", "subscriptionKey"]

    def get_security_definition(self, auto_schema: AutoSchema) -> list[dict[str, str]]:
        header = {
            "type": "apiKey",
            "in": "header",
            "name": LITERAL_HEADER,
        }
        return [{"type": "http", "scheme": "bearer"}, header]

    def get_security_requirement(self, auto_schema: AutoSchema) -> dict[str, list[str]]:
        return {name: [] for name in self.name}


class ProviderKey(OpenApiAuthenticationExtension):
    target_class = "core.api.authentication.ProviderAuthentication"
    name = "providerKey"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer"}


def base_classes() -> list[type]:
    """Classes whose docstrings speak to readers of the code, not of the document."""
    return [*get_lib_doc_excludes(), *subclasses_of(View), Contract, Parameters]


def subclasses_of(base: type[Class]) -> list[type[Class]]:
    found = [base]
    for one in found:  # grows while it is read: the classes below each class too
        found += one.__subclasses__()
    return found


def one_path_each(endpoints: list[Endpoint]) -> list[Endpoint]:
    """Show each view once. It answers below the prefix of each kind of client."""
    return [
        endpoint
        for endpoint in endpoints
        if not ALIAS_PREFIXES.match(endpoint[0]) and endpoint[0] not in ALIASES
    ]


def share_enums(
    result: Schema, generator: SchemaGenerator, request: Request, public: bool
) -> Schema:
    """Let the parameters of queries refer to named enums, as bodies do."""
    schemas = result["components"]["schemas"]
    for predicates in (schemas["PredicateType"], schemas["DerivedPredicateType"]):
        named = [PREDICATE_NAMES[one] for one in predicates["enum"]]
        predicates["x-enum-varnames"] = named
    names = {tuple(one["enum"]): name for name, one in schemas.items() if "enum" in one}
    for *_, operation in operations_of(result):
        for parameter in operation.get("parameters", []):
            shape = parameter["schema"]
            if "enum" not in shape:
                continue
            values = tuple(shape["enum"])
            if values not in names:
                names[values] = name = enum_name(parameter["name"], values)
                schemas[name] = {"type": "string", "enum": list(values)}
                if name.startswith("Sort"):  # `-name` and `name` are one word else
                    schemas[name]["x-enum-varnames"] = [
                        sort_name(one) for one in values
                    ]
            given = {"$ref": f"#/components/schemas/{names[values]}"}
            if "default" in shape:
                given["default"] = shape["default"]
            parameter["schema"] = given
    return result


def enum_name(parameter: str, values: Iterable[str]) -> str:
    """The name of an enum that only parameters have, as `SortCreatedUpdated`."""
    if parameter == "sort":
        fields = [one for one in values if not one.startswith("-")]
        return "Sort" + "".join(one.removesuffix("At").capitalize() for one in fields)
    if parameter == "role":
        return "Or".join(one.capitalize() for one in values)
    return "Http" + parameter.capitalize()


def sort_name(value: str) -> str:
    words = re.sub(r"([A-Z])", r"_\1", value.lstrip("-")).upper()
    return f"{words}_DESCENDING" if value.startswith("-") else words


def add_errors(
    result: Schema, generator: SchemaGenerator, request: Request, public: bool
) -> Schema:
    """Document the one error shape, and on every operation its codes."""
    codes = {"type": "string", "enum": answered_codes()}
    codes["description"] = "Stable; see docs/errors.md. Versions to come add codes."
    result["components"]["schemas"] |= {"Error": ERROR, "ErrorCode": codes}
    for method, path, operation in operations_of(result):
        responses = operation["responses"]
        # Each success is a 200: the original clients accept no other.
        for status in ("201", "204"):
            if status in responses:
                responses["200"] = responses.pop(status) | {"description": "Done"}
        if method.upper() in idempotency.METHODS:
            operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
        found = errors_of(operation, method.upper() in idempotency.METHODS)
        if scope := operation.get("x-scope"):
            refusal = 409 if path.startswith(WALLET_PREFIXES) else 403
            message = MISSING_SCOPE.format(scope=scope)
            found.setdefault(refusal, {})["missing_scope"] = {"message": message}
        for number, bodies in sorted(found.items()):
            responses[str(number)] = describe_errors(bodies)
    return result


def operations_of(result: Schema) -> list[tuple[str, str, Schema]]:
    return [
        (method, path, operation)
        for path, operations in result["paths"].items()
        for method, operation in operations.items()
    ]


def add_descriptions(
    result: Schema, generator: SchemaGenerator, request: Request, public: bool
) -> Schema:
    """Add descriptions to tags, parameters and properties, and examples to required ones.

    In a form each field has an example. The example of a JSON body is one of the
    operation's.
    """
    result["tags"] = [
        {"name": name, "description": text} for name, text in descriptions.TAGS.items()
    ]
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
    for _, path, operation in operations_of(result):
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


def name_differences(
    result: Schema, generator: SchemaGenerator, request: Request, public: bool
) -> Schema:
    """Say in each operation what differs without the header of its security scheme."""
    schemas = result["components"]["schemas"]
    for operations in result["paths"].values():
        for operation in operations.values():
            shapes = [operation["responses"]["200"], operation.get("requestBody")]
            found = schemas_in(shapes, schemas)
            texts = [text for name, text in DIFFERENCES.items() if name in found]
            if texts:
                sentence = f"Without the header `{LITERAL_HEADER}`, {'; '.join(texts)}."
                before = operation.get("description", "")
                operation["description"] = f"{before}\n\n{sentence}".strip()
    return result


def schemas_in(value: Any, schemas: Schema) -> set[str]:
    """The names of the schemas that a part of the document refers to."""
    found: set[str] = set()
    left = [value]
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


def describe_errors(bodies: Mapping[str, Schema]) -> Schema:
    content = {
        "schema": {"$ref": "#/components/schemas/Error"},
        "examples": {
            code: {"value": {"code": code} | body} for code, body in bodies.items()
        },
    }
    description = " or ".join(f"`{code}`" for code in bodies)
    return {"description": description, "content": {"application/json": content}}
