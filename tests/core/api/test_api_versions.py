"""The dated version of the API, and the headers of deprecated operations."""

import json

import pytest

from core.api.views import API_VERSION_HEADER
from core.version import API_VERSION
from tests.core.api.test_generated import DOCUMENT, PRIVATE, example_of
from tests.support.errors import assert_error
from tests.support.world import caller, filled

pytestmark = pytest.mark.django_db(transaction=True)


def test_every_read_takes_the_version_and_no_unknown_one(world):
    ids = world.api_ids()
    for method, path, _ in PRIVATE:
        if method != "get" or path.endswith("/stream"):
            continue
        asking, address = caller(world.faber, path), filled(path, ids)
        response = asking.send("get", address, **{API_VERSION_HEADER: API_VERSION})
        assert response.status_code == 200, path
        refused = asking.send("get", address, **{API_VERSION_HEADER: "2020-01-01"})
        assert_error(refused, 400, "unknown_api_version")
        assert refused[API_VERSION_HEADER] == API_VERSION


def test_an_unknown_version_changes_nothing(faber):
    version = {API_VERSION_HEADER: "2999-01-01"}
    refused = faber.send("post", "/connections", {}, **version)
    assert_error(refused, 400, "unknown_api_version")
    assert faber.get("/connections") == []


def test_the_document_has_the_version():
    assert DOCUMENT["info"]["x-api-version"] == API_VERSION


def test_each_answer_has_the_version_and_tells_a_deprecated_operation(world):
    ids = world.api_ids()
    seen = 0
    for method, path, operation in PRIVATE:
        if path.endswith("/stream") or (
            method != "get" and not operation.get("deprecated")
        ):
            continue
        query = (
            f"?walletId={world.another_wallet()}"
            if "ByQuery" in operation["operationId"]
            else ""
        )
        response = caller(world.faber, path).send(
            method, filled(path, ids) + query, example_of(operation)
        )
        assert response[API_VERSION_HEADER] == API_VERSION, path
        link = response.headers.get("Link", "")
        is_deprecated = bool(operation.get("deprecated"))
        assert ("Deprecation" in response.headers) == is_deprecated, path
        assert ('rel="deprecation"' in link) == is_deprecated, path
        if is_deprecated:
            seen += 1
            assert response["Deprecation"].startswith("@")
            assert operation["operationId"] in link
    assert seen == 8


def test_the_link_of_a_page_stands_beside_that_of_a_deprecation(world):
    world.another_policy()
    response = world.faber.send("get", "/definitions/verifications?limit=1")
    assert 'rel="next"' in response["Link"] and 'rel="deprecation"' in response["Link"]
    assert len(json.loads(response.content)) == 1
