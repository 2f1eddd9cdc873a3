"""The examples in /docs can be tried as they stand, with the keys of the demo organization."""

import json
from io import StringIO
from urllib.parse import quote

import pytest
from django.test import Client
from drf_spectacular.generators import SchemaGenerator

from agency import docs, examples
from agency.descriptions import PARAMETERS, PROPERTIES
from agency.management.commands import demo
from tests.development.test_demo import demo_file  # noqa: F401

# The demo makes neither revocable credentials nor organizations of a provider.
NOT_MADE = (examples.REGISTRY, "/provider/v1/")
OF_OTHERS = ("https://agency.example/i/",)  # an invitation, offer or request of somebody else


@pytest.fixture
def document():
    return json.loads(json.dumps(SchemaGenerator().get_schema(request=None, public=True)))


def test_each_parameter_and_property_is_described_and_those_of_paths_have_examples(document):
    for path, method, operation in operations(document):
        for parameter in operation.get("parameters", []):
            wanted = {"description", "example"} if parameter["in"] == "path" else {"description"}
            assert wanted <= parameter.keys(), (method, path, parameter)
    for name, schema in document["components"]["schemas"].items():
        for member, shape in schema.get("properties", {}).items():
            assert shape.get("description"), f"agency/descriptions.py lacks {name}.{member}"


def test_no_description_is_left_over(document):
    schemas = document["components"]["schemas"]
    members = {member for schema in schemas.values() for member in schema.get("properties", {})}
    paths = {
        parameter["name"]
        for *_, operation in operations(document)
        for parameter in operation.get("parameters", [])
    }
    for name in PROPERTIES:
        schema, _, member = name.rpartition(".")
        assert member in (schemas[schema]["properties"] if schema else members), name
    assert set(PARAMETERS) <= paths


def test_the_examples_run_with_the_demos_ids(demo_file, document, monkeypatch):  # noqa: F811
    monkeypatch.setattr(docs, "DEMO", demo_file)
    command = demo.Command(stdout=StringIO())
    command.handle()
    client, keys = Client(), dict(command.api.session.headers)
    ids = client.get("/docs/examples.json").json()
    tried, wrong = 0, {}
    for path, method, operation in sorted(operations(document), key=is_late):
        for body in bodies(operation):
            address = filled(path, operation, ids)
            if any(part in path + str(parameters(operation)) for part in NOT_MADE):
                continue
            if method == "delete" or any(part in str(body) for part in OF_OTHERS):
                continue
            given = {} if body is None else {"data": json.dumps(with_ids(body, ids))}
            answer = client.generic(
                method.upper(), address, headers=keys, content_type="application/json", **given
            )
            tried += 1
            if answer.status_code not in expected(path, method, body, operation):
                wrong[f"{method} {path}"] = f"{answer.status_code} {answer.content!r:.300}"
    assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())
    assert tried > 60


def expected(path, method, body, operation):
    """409: the object is in another state. 400: Swagger UI shows the form that is to be filled."""
    if path.endswith("/stream"):
        return (421,)  # another process serves it
    needs_form = body is None and operation.get("requestBody")
    return (200,) if method == "get" else (200, 409, 400) if needs_form else (200, 409)


def is_late(operation):
    """Reads first, as they see what the demo left; what ends something last."""
    path, method, _ = operation
    return (method != "get", path.endswith(("/hangup", "/rotate")))


def operations(document):
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def parameters(operation):
    return [one for one in operation.get("parameters", []) if one["in"] == "path"]


def bodies(operation):
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    return [one["value"] for one in content.get("examples", {}).values()] or [None]


def with_ids(value, ids):
    """As agency/static/agency/docs.js does it."""
    if isinstance(value, dict):
        return {name: with_ids(item, ids) for name, item in value.items()}
    if isinstance(value, list):
        return [with_ids(item, ids) for item in value]
    return ids.get(value, value) if isinstance(value, str) else value


def filled(path, operation, ids):
    for parameter in parameters(operation):
        example = ids.get(parameter["example"], parameter["example"])
        path = path.replace(f"{{{parameter['name']}}}", quote(example, safe=""))
    return path
