"""Attested resources of did:webvh: what is taken, what is refused and why."""

import copy
import json
import random
import time

import pytest

from credentials.ledgers.webvh import encoding
from credentials.ledgers.webvh.log import check_log
from credentials.ledgers.webvh.refusals import Refused
from credentials.ledgers.webvh.resources import (
    DEFINITION,
    REGISTRY,
    SCHEMA,
    STATUS_LIST,
    Link,
    check_resource,
    check_status_list,
)
from tests.support import webvh

VECTORS = webvh.vectors()
DID = VECTORS["did"]
DOCUMENT = check_log(DID, webvh.to_bytes(VECTORS["log"]), time.time()).document
BY_KIND = {one["metadata"]["resourceType"]: one for one in VECTORS["resources"]}
# Each vector that is not taken, and the rule that it breaks.
REASONS = {
    "digest-differs": "another_digest",
    "key-unknown": "key_not_for_assertion",
    "key-of-another-did": "key_of_another_did",
    "key-not-for-assertion": "key_not_for_assertion",
    "purpose-authentication": "wrong_proof",
    "id-of-another-did": "another_id",
    "issuer-of-another-did": "another_issuer",
    "type-is-text": "no_attested_resource",
    "proof-is-list": "no_content_or_proof",
    "proof-missing": "no_content_or_proof",
    "metadata-changed": "wrong_proof",
}


def check(resource, kind=SCHEMA, asked=None, document=DOCUMENT):
    asked = asked or resource["id"]
    return check_resource(asked, kind, json.dumps(resource).encode(), document)


def refusal_of(resource, kind=SCHEMA, asked=None, document=DOCUMENT):
    with pytest.raises(Refused) as refused:
        check(resource, kind, asked, document)
    assert refused.value.code == "resource_refused"
    return refused.value.reason


@pytest.mark.parametrize(
    "case", VECTORS["otherResources"], ids=lambda case: case["name"]
)
def test_a_resource_is_judged_as_the_vector_says(case):
    resource, asked = case["resource"], case["asked"]
    if case["verdict"] == "refused":
        assert refusal_of(resource, asked=asked) == REASONS[case["name"]]
    else:
        assert check(resource, asked=asked).content == resource["content"]


def test_a_number_that_has_no_canonical_form_is_a_rule_that_is_broken():
    schema = BY_KIND[SCHEMA]
    changed = schema | {"content": schema["content"] | {"more": 2**60}}
    assert refusal_of(changed) == "not_canonical"


@pytest.mark.parametrize("kind", BY_KIND)
def test_each_kind_is_taken_as_what_it_is(kind):
    resource = BY_KIND[kind]
    found = check(resource, kind)
    assert found.content == resource["content"]
    assert len(found.links) == len(resource.get("links", []))
    for other in BY_KIND.keys() - {kind}:
        assert refusal_of(resource, other) == "another_type"


def test_what_credo_writes_is_taken():
    made = webvh.made_by_credo()
    document = made["log"][-1]["state"]
    assert document["assertionMethod"] == []
    found = check(made["schema"], document=document)
    assert found.content["attrNames"] == ["name", "age"]


def attested(kind, content=None, **members):
    """A resource with right digest and proof, and other content."""
    base = BY_KIND[kind]
    content = base["content"] | (content or {})
    digest = encoding.resource_digest(content)
    resource = base | {"id": f"{DID}/resources/{digest}", "content": content} | members
    return webvh.signed_again(resource)


@pytest.mark.parametrize(
    "kind, content",
    [
        (SCHEMA, {"attrNames": []}),
        (SCHEMA, {"attrNames": ["name"] * 126}),
        (SCHEMA, {"attrNames": [7]}),
        (SCHEMA, {"name": None}),
        (DEFINITION, {"type": "BBS"}),
        (DEFINITION, {"value": {"primary": []}}),
        (DEFINITION, {"schemaId": 7}),
        (REGISTRY, {"credDefId": f"{VECTORS['strangersDid']}/resources/zQm"}),
        (
            REGISTRY,
            {"value": BY_KIND[REGISTRY]["content"]["value"] | {"maxCredNum": 0}},
        ),
        (
            REGISTRY,
            {"value": BY_KIND[REGISTRY]["content"]["value"] | {"maxCredNum": 2**40}},
        ),
        (REGISTRY, {"value": {}}),
        (STATUS_LIST, {"revocationList": [0, 2]}),
        (STATUS_LIST, {"revocationList": [0, True]}),
        (STATUS_LIST, {"timestamp": "now"}),
        (STATUS_LIST, {"currentAccumulator": None}),
    ],
)
def test_content_that_cannot_be_used_is_refused(kind, content):
    assert refusal_of(attested(kind, content), kind) == "wrong_content"
    assert check(attested(kind), kind)


@pytest.mark.parametrize("kind", BY_KIND)
def test_another_issuer_is_refused(kind):
    resource = attested(kind, {"issuerId": VECTORS["strangersDid"]})
    assert refusal_of(resource, kind) == "another_issuer"


@pytest.mark.parametrize(
    "links, reason",
    [
        ({}, "wrong_link"),
        ([7], "wrong_link"),
        ([{"id": 7, "type": STATUS_LIST, "timestamp": 1}], "wrong_link"),
        (
            [{"id": f"{DID}/resources/z1", "type": STATUS_LIST, "timestamp": "1"}],
            "wrong_link",
        ),
        (
            [{"id": "did:x:y/resources/z1", "type": STATUS_LIST, "timestamp": 1}],
            "wrong_link",
        ),
        (
            2 * [{"id": f"{DID}/resources/z1", "type": STATUS_LIST, "timestamp": 1}],
            "two_lists_of_one_time",
        ),
    ],
)
def test_links_that_are_none_are_refused(links, reason):
    assert refusal_of(attested(REGISTRY, links=links), REGISTRY) == reason


def test_links_are_in_the_order_of_their_times():
    link = {"id": f"{DID}/resources/z1", "type": STATUS_LIST}
    listed = [link | {"timestamp": 9}, link | {"timestamp": 3}]
    found = check(attested(REGISTRY, links=listed), REGISTRY)
    assert [one.timestamp for one in found.links] == [3, 9]


def test_a_list_belongs_to_its_registry_and_has_the_time_of_its_link():
    registry, published = BY_KIND[REGISTRY], BY_KIND[STATUS_LIST]["content"]
    link = Link(published["timestamp"], f"{DID}/resources/zQm")
    arguments = registry["id"], registry["content"]
    assert check_status_list(published, link, *arguments) == published
    timeless = encoding.without(published, "timestamp")
    assert check_status_list(timeless, link, *arguments) == published
    for changes, reason in (
        ({"timestamp": link.timestamp + 1}, "another_time"),
        ({"revRegDefId": "another"}, "list_of_another_registry"),
        ({"revocationList": [0]}, "list_of_another_registry"),
    ):
        with pytest.raises(Refused) as refused:
            check_status_list(published | changes, link, *arguments)
        assert refused.value.reason == reason


@pytest.mark.parametrize(
    "data", [b"", b"[", b"7", b"\xff", b'{"id": 1, "id": 2}', b"[" * 100_000]
)
def test_what_is_no_resource_is_refused(data):
    with pytest.raises(Refused):
        check_resource(f"{DID}/resources/zQm", SCHEMA, data, DOCUMENT)


def test_a_key_that_stands_twice_is_refused():
    resource = BY_KIND[SCHEMA]
    [key, *_] = DOCUMENT["verificationMethod"]
    document = DOCUMENT | {"verificationMethod": [key, key]}
    assert refusal_of(resource, document=document) == "key_not_in_document"
    assert refusal_of(resource, document={}) == "key_not_for_assertion"
    document = DOCUMENT | {"verificationMethod": [key | {"type": "JsonWebKey"}]}
    assert refusal_of(resource, document=document) == "key_not_in_document"


@pytest.mark.parametrize("kind", BY_KIND)
def test_of_hundreds_of_changed_resources_none_is_taken(kind):
    chance = random.Random(kind)
    base = BY_KIND[kind]
    for _ in range(500):
        changed = copy.deepcopy(base)
        webvh.change_somewhere(changed, chance)
        with pytest.raises(Refused):
            check(changed, kind, asked=base["id"])
