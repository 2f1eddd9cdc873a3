"""`GET /openapi.json` costs little, however often it is asked for."""

import gzip
import json

from agency.api.openapi import document, schema


def test_the_openapi_document_is_made_once(client, db, monkeypatch):
    first = client.get("/openapi.json")
    monkeypatch.setattr("agency.api.openapi.document.SchemaGenerator", None)
    again = client.get("/openapi.json")
    assert again.status_code == 200 and again.content == first.content
    assert json.loads(first.content)["openapi"].startswith("3.")


def test_it_is_compressed_for_those_who_take_that(client, db):
    plain = client.get("/openapi.json")
    packed = client.get("/openapi.json", headers={"Accept-Encoding": "br, gzip"})
    assert packed["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.content) == plain.content
    assert len(packed.content) < len(plain.content) / 5
    assert "Accept-Encoding" in packed["Vary"]


def test_who_has_it_already_is_told_so(client, db):
    etag = client.get("/openapi.json")["ETag"]
    answer = client.get("/openapi.json", headers={"If-None-Match": etag})
    assert answer.status_code == 304 and not answer.content
    assert etag == document.document().etag


def test_what_has_a_quota_documents_both_codes_of_409(client, db):
    paths = json.loads(client.get("/openapi.json").content)["paths"]
    found = set()
    for operations in paths.values():
        for operation in operations.values():
            content = operation["responses"].get("409", {}).get("content", {})
            examples = content.get("application/json", {}).get("examples", {})
            if "quota_exceeded" in examples:
                assert "wrong_state" in examples
                found.add(operation["operationId"])
    assert found == schema.OPERATIONS_WITH_QUOTA


def test_what_makes_a_definition_documents_that_its_key_may_not_be_ready(client, db):
    paths = json.loads(client.get("/openapi.json").content)["paths"]
    found = {
        operation["operationId"]
        for operations in paths.values()
        for operation in operations.values()
        if operation["responses"].get("503", {}).get("description") == "key_not_ready"
    }
    assert found == {
        "createCredentialDefinition",
        "createCredentialDefinitionForSchemaId",
        "setUpSamples",
    }
