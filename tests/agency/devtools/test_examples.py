"""The examples in /docs work unchanged with the keys of the demo organization."""

import json
from collections import Counter
from io import StringIO
from urllib.parse import quote, urlencode

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.urls import reverse
from drf_spectacular.generators import SchemaGenerator

from agency.devtools.management.commands import demo
from core.api.dialects import LITERAL_HEADER, SUBSCRIPTION_HEADERS
from core.api.openapi import examples
from core.api.openapi.descriptions import (
    PARAMETERS,
    PARAMETERS_BELOW,
    PROPERTIES,
    PROPERTIES_OF,
)
from tenants.models import Tenant
from tests.agency.devtools.test_demo import demo_file  # noqa: F401
from tests.support.openapi import (
    OF_THE_OTHER_DIALECT,
    complaints,
    difference,
    operations,
)
from tests.support.pictures import picture, storage  # noqa: F401

NOT_DELETED_SOON = (409, "No key of the organization has asked to delete it.")
NO_WEBVH_DID = (409, "A did:webvh needs a host that everybody reads by https.")
# What does not answer 200, by operation and example, with the reason.
EXCEPTIONS = {
    ("streamEvents", ""): (421, "An endless answer, which another process serves."),
    ("offerCredentialFromProposal", "SomethingElse"): (
        409,
        "The first example has answered the proposal; each of the two does so "
        "where it is alone.",
    ),
    ("addCredentialDefinitionFormat", "WithItsType"): (
        409,
        "The first example has added the format.",
    ),
    ("createWebvhDid", "AtTheHostOfTheInstallation"): NO_WEBVH_DID,
    ("createCredentialDefinitionTwin", ""): NO_WEBVH_DID,
    ("rotateWebvhKeys", "InTurn"): NO_WEBVH_DID,
    ("rotateWebvhKeys", "SomebodyElseMayHaveTheKey"): NO_WEBVH_DID,
    ("endWebvhDid", "WhatWasIssuedStays"): NO_WEBVH_DID,
    ("endWebvhDid", "NothingStays"): NO_WEBVH_DID,
    ("uploadCertificates", "ThoseOfAKey"): (
        400,
        "Its certificate is of no key of the demo.",
    ),
    ("createMailing", "InYourWords"): (
        409,
        "Organizations send no mails unless the operator lets them.",
    ),
    ("undoTenantDeletion", "ByAStolenKey"): NOT_DELETED_SOON,
    ("endTenantDeletion", ""): NOT_DELETED_SOON,
}
# The examples that need a link.
LINKS = {
    "acceptInvitation",
    "acceptCredential",
    "submitVerificationForParameters",
    "submitVerificationFromDataAutoSelect",
    "getAvailableCredentialsForParameters",
}
# A file is chosen by hand: no example can hold one.
PICTURE = {"uploadedFiles": picture("PNG")}


@pytest.fixture
def document():
    return json.loads(
        json.dumps(SchemaGenerator().get_schema(request=None, public=True))
    )


def test_each_parameter_and_property_is_described_and_those_required_have_examples(
    document,
):
    for path, method, operation in operations(document):
        for parameter in operation.get("parameters", []):
            wanted = (
                {"description", "example"}
                if parameter.get("required")
                else {"description"}
            )
            assert wanted <= parameter.keys(), (method, path, parameter)
    bare = [
        f"{name}.{member}"
        for name, schema in document["components"]["schemas"].items()
        for member, shape in schema.get("properties", {}).items()
        if not shape.get("description")
    ]
    assert not bare, "Describe them in descriptions.yaml."


def test_no_description_is_left_over(document):
    schemas = document["components"]["schemas"]
    members = {
        member
        for schema in schemas.values()
        for member in schema.get(
            "properties",
            {},
        )
    }
    parameters = {
        (path, parameter["name"])
        for path, _, operation in operations(document)
        for parameter in operation.get("parameters", [])
    }
    assert set(PROPERTIES) <= members
    for name, texts in PROPERTIES_OF.items():
        assert set(texts) <= set(schemas[name]["properties"]), name
    assert set(PARAMETERS) <= {name for _, name in parameters}
    for part, texts in PARAMETERS_BELOW.items():
        assert set(texts) <= {name for path, name in parameters if part in path}


@pytest.mark.parametrize(
    ("header", "differing"),
    [
        pytest.param(LITERAL_HEADER, set(), id="with its own header"),
        pytest.param(
            SUBSCRIPTION_HEADERS[1], set(OF_THE_OTHER_DIALECT), id="with another"
        ),
    ],
)
def test_each_operation_answers_its_examples_as_documented(
    demo_file,  # noqa: F811
    storage,  # noqa: F811
    document,
    monkeypatch,
    settings,
    header,
    differing,
):
    command = played(settings)
    ids = Client().get("/docs/examples.json").json()
    assert set(ids) == set(all_ids())
    sent = command.api.session.headers
    sent[header] = sent.pop(LITERAL_HEADER)
    tried, wrong, differed = set(), {}, set()
    for operation, example, answer in answers(document, command, ids):
        name = operation["operationId"]
        tried.add(name)
        expected = EXCEPTIONS.get((name, example), (200, ""))[0]
        if answer.status_code != expected:
            wrong[f"{name} {example}"] = f"{answer.status_code} {answer.content!r:.300}"
            continue
        for complaint in complaints(document, operation, answer):
            if known := difference(operation, complaint):
                differed.add(known)
            else:
                wrong[f"{name} {example}"] = complaint
    assert not wrong, "\n".join(f"{name}: {text}" for name, text in wrong.items())
    assert differed == differing
    assert tried == {operation["operationId"] for *_, operation in operations(document)}


def test_its_own_ids_work_as_well(
    demo_file,  # noqa: F811
    storage,  # noqa: F811
    document,
    settings,
):
    """Those of the studio's page, which knows no links: they are secrets."""
    command = played(settings)
    client, owner = Client(), User.objects.get(email=demo.EMAIL)
    client.force_login(owner)
    tenant = Tenant.objects.get(memberships__user=owner)
    ids = client.get(reverse("studio:api_docs_ids", args=[tenant.pk])).json()
    found, wrong = Counter(), {}
    for operation, example, answer in answers(document, command, ids):
        name = operation["operationId"]
        found[answer.status_code] += 1
        if answer.status_code != 200 and (name, example) not in EXCEPTIONS:
            wrong[name] = f"{answer.status_code} {answer.content!r:.300}"
    assert set(wrong) == LINKS, wrong
    assert found[200] >= 160 and not found[404], found


def played(settings):
    settings.EXPECTED_PROCESSES = []  # else `/health/status` is 503
    command = demo.Command(stdout=StringIO())
    command.handle()
    return command


def answers(document, command, ids):
    """The answer to each example, in the order of the page: (operation, name, answer)."""
    client = Client()
    for path, method, operation in in_order_of_the_page(document):
        api = command.provider if path.startswith("/provider/") else command.api
        for example, body in bodies(document, operation).items():
            answer = client.generic(
                method.upper(),
                filled(path, operation, ids),
                headers=dict(api.session.headers),
                **encoded(with_ids(body, ids)),
            )
            yield operation, example, answer


def all_ids():
    """The placeholders of core/api/openapi/examples.py.

    The demo must have an object for each.
    """
    return [
        one
        for name, one in vars(examples).items()
        if name.isupper() and isinstance(one, str)
    ]


def in_order_of_the_page(document):
    """As Swagger UI and agency/static/agency/docs.js show the operations."""
    tags = [tag["name"] for tag in document["tags"]]

    def place(one):
        path, method, operation = one
        ends = method == "delete"
        group = tags.index(operation["tags"][0])
        return group, ends + (ends and not path.endswith("}"))

    return sorted(operations(document), key=place)


def bodies(document, operation):
    """The request bodies by the names of their examples.

    A form is built field by field, as in the page.
    """
    content = operation.get("requestBody", {}).get("content", {})
    if examples_of := content.get("application/json", {}).get("examples"):
        return {name: one["value"] for name, one in examples_of.items()}
    if "multipart/form-data" not in content:
        assert not operation.get("requestBody", {}).get("required"), "has no example"
        return {"": None}
    reference = content["multipart/form-data"]["schema"]["$ref"]
    schema = document["components"]["schemas"][reference.rpartition("/")[2]]
    fields = schema["properties"].items()
    return {
        "": Form(
            {n: one["example"] for n, one in fields if "example" in one} or PICTURE
        )
    }


class Form(dict):
    """A body that is sent as multipart/form-data."""


def encoded(body):
    if body is None:
        return {}
    if isinstance(body, Form):
        fields = {
            name: ContentFile(value, "a.png") if isinstance(value, bytes) else value
            for name, value in body.items()
        }
        return {
            "data": encode_multipart(BOUNDARY, fields),
            "content_type": MULTIPART_CONTENT,
        }
    return {"data": json.dumps(body), "content_type": "application/json"}


def with_ids(value, ids):
    """As agency/static/agency/docs.js does it."""
    if isinstance(value, dict):
        own = ids.get("credentialValues")
        return type(value)(
            {
                name: own if own and name == "credentialValues" else with_ids(item, ids)
                for name, item in value.items()
            }
        )
    if isinstance(value, list):
        return [with_ids(item, ids) for item in value]
    return ids.get(value, value) if isinstance(value, str) else value


def filled(path, operation, ids):
    query = {}
    for parameter in operation.get("parameters", []):
        name = parameter["name"]
        if not parameter.get("required"):
            continue
        example = ids.get(parameter["example"], parameter["example"])
        path = path.replace(f"{{{name}}}", quote(example, safe=""))
        if parameter["in"] == "query":
            query[name] = example
    return f"{path}?{urlencode(query)}" if query else path
