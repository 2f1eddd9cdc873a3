"""`GET /openapi.json` costs little, however often it is asked for."""

import gzip
import json

from core.api.openapi import document
from core.api.openapi.error_codes import read_tables
from tests.support.openapi import operations
from webhooks.events.types import Type

ERRORS = read_tables()[0].rows


def test_the_openapi_document_is_made_once(client, db, monkeypatch):
    first = client.get("/openapi.json")
    monkeypatch.setattr("core.api.openapi.document.SchemaGenerator", None)
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


def test_each_operation_names_errors_of_the_list_with_their_status(client, db):
    document = json.loads(client.get("/openapi.json").content)
    known = document["components"]["schemas"]["ErrorCode"]["enum"]
    for _, _, operation in operations(document):
        for status, response in operation["responses"].items():
            if status == "200":
                continue
            content = response["content"]["application/json"]
            for code, example in content["examples"].items():
                assert code in known and example["value"]["code"] == code
                assert status in ERRORS[code][0], (operation["operationId"], code)


def test_an_operation_names_what_it_alone_answers(client, db):
    paths = json.loads(client.get("/openapi.json").content)["paths"]
    responses = paths["/definitions/credentials"]["post"]["responses"]
    named = {
        code
        for status, response in responses.items()
        if status != "200"
        for code in response["content"]["application/json"]["examples"]
    }
    assert {"schema_exists", "tag_taken", "key_not_ready", "quota_exceeded"} <= named
    assert "too_many_at_once" in named and "offer_taken" not in named


def test_generators_find_what_they_need(client, db):
    document = client.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    assert document["openapi"].startswith("3.1") and document["servers"]
    assert set(document["webhooks"]) == set(Type)
    assert all("requestBody" in one["post"] for one in document["webhooks"].values())
    assert not [name for name in schemas if "Blank" in name]
    assert "IssuedAtUtc" in schemas["CredentialContract"]["properties"]
    assert '"format": "binary"' in json.dumps(schemas)
    for path, _, operation in operations(document):
        for parameter in operation.get("parameters", []):
            assert "enum" not in parameter["schema"], (path, parameter["name"])
        if path.startswith("/ledger/"):
            content = operation["responses"]["200"]["content"]
            assert "$ref" in content["application/json"]["schema"], path
