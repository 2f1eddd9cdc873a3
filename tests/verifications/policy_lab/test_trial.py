"""Trying a policy on samples: what it answers, and what it refuses."""

from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.api.openapi.operation import all_texts
from tests.support.errors import assert_error, error_of
from tests.support.presentations import attribute, predicate, required
from verifications.api.lab import MAX_SAMPLES

DEGREE = {"name": "Alice", "degree": "Maths", "age": "28"}
NAME = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}
TEXTS = all_texts()["tryVerificationPolicy"]
[EXAMPLE] = TEXTS.request.values()
POLICY = {name: value for name, value in EXAMPLE.items() if name != "credentials"}


def tried(organization, *credentials, **policy):
    body = NAME | policy | {"credentials": list(credentials)}
    return organization.post("/verificationPolicies/try", body)


def codes(answer):
    """By sample, why it does not satisfy the one item."""
    [item] = answer["items"]
    return [one.get("code") for one in item["credentials"]]


def restricted(**restriction):
    return {"attributes": [attribute("name", restriction)]}


def compared(value):
    return {"attributes": [], "predicates": [predicate("age", ">", value)]}


def test_a_policy_is_tried_as_documented_and_also_by_its_id(faber, acme):
    [answer] = TEXTS.response.values()
    tried_now = faber.send(
        "post", "/verificationPolicies/try", EXAMPLE | {"smaples": 1}
    )
    assert tried_now.json() == answer
    assert tried_now.headers["X-Ignored-Members"] == "smaples"
    stored = faber.post("/verificationPolicies", POLICY)["policyId"]
    body = {"policyId": stored, "credentials": EXAMPLE["credentials"]}
    assert faber.post("/verificationPolicies/try", body) == answer
    assert error_of(acme.post, "/verificationPolicies/try", body).status == 404
    both = error_of(tried, faber, policyId=stored)
    assert "policyId" in both.body["errors"], "a policy and the id of one"


def test_without_samples_nothing_is_satisfied_and_with_some_nothing_is_kept(faber):
    answer = tried(faber)
    assert (answer["satisfied"], answer["selections"]) == (False, [])
    assert answer["items"] == [{"policyName": "name", "credentials": []}]
    assert [one["code"] for one in answer["lint"]] == ["no_restriction"]
    tried(faber, {"values": {"name": "Alice"}})
    assert faber.get("/verificationPolicies") == faber.get("/verifications") == []


REASONS = [
    ({}, {"shoe": "40"}, "attribute_not_in_schema"), ({}, {"N A M E": ""}, None),
    (restricted(schemaName="Degree"), {"name": "A"}, "restriction"),
    (restricted(**required("name", "a")), {"name": "A"}, "value_restriction"),
    (compared(17), {"age": "old"}, "not_a_number"), (compared(17), {"age": 18}, None),
    (compared(17), {"age": "17"}, "predicate_not_met"),
    (compared(-2), {"age": 2**31 - 1}, "predicate_out_of_range"),
]  # fmt: skip


def test_it_says_why_a_sample_does_not_satisfy_an_item(faber):
    for policy, values, code in REASONS:
        assert codes(tried(faber, {"values": values}, **policy)) == [code]
    known = {"values": {"name": "A"}}
    found = codes(tried(faber, known | {"definitionId": "nobody's"}, known))
    assert found == ["unknown_definition", None]


def test_a_revoked_sample_fits_only_where_nothing_is_asked_and_is_not_selected(faber):
    revoked = {"values": {"name": "A"}, "revoked": True}
    times = ({"validAt": "2020-01-01T00:00:00Z"}, {"validAt": "2100-01-01T00:00:00Z"})
    for requirement in ({"validNow": True}, *times):
        asked = tried(faber, revoked, revocationRequirement=requirement)
        assert codes(asked) == ["revoked_or_invalid"]
    unasked = tried(faber, revoked)
    [shown] = unasked["items"][0]["credentials"]
    assert shown["satisfies"] and "autoSelect does not" in shown["message"]
    assert not unasked["satisfied"]
    selected = tried(faber, revoked, revoked | {"revoked": False})["selections"]
    assert selected == [{"policyName": "name", "credential": 1}]


def test_the_network_says_what_a_definition_is(faber):
    degree = faber.defines("name", "degree", "age", name="Degree")
    sample = {"definitionId": degree["definitionId"], "values": DEGREE}
    wanted = restricted(
        schemaName="Degree",
        schemaVersion="1.0",
        schemaId=degree["schemaId"],
        issuerDid=degree["definitionId"].split(":")[0],
        credentialDefinitionId=degree["definitionId"],
    )
    assert codes(tried(faber, sample, **wanted)) == [None]
    by_schema = {"schemaId": degree["schemaId"], "values": DEGREE}
    assert codes(tried(faber, by_schema, **wanted)) == ["restriction"]
    assert codes(tried(faber, by_schema, **restricted(schemaName="Degree"))) == [None]


def test_what_is_nowhere_is_looked_for_once(faber):
    restrictions = [{"credentialDefinitionId": f"nowhere {n}"} for n in range(20)]
    item = {"policyName": "p", "attributeNames": ["a"], "restrictions": restrictions}
    items = [item | {"policyName": f"p{number}"} for number in range(5)]
    with CaptureQueriesContext(connection) as queries:
        tried(faber, {"values": DEGREE}, attributes=items)
    asked = [one for one in queries if "publishedobject" in one["sql"]]
    assert len(asked) <= len(restrictions)


IMPOSSIBLE = [
    ({"values": {"name": "Alice"}}, "values"), ({"revoked": True}, "revoked"),
    ({"values": DEGREE | {"shoe": "40"}}, "values"),
    ({"values": {"Name": "A", "degree": "B", "age": "1"}}, "values"),
    ({"schemaName": "Other"}, "schemaName"), ({"schemaId": "Other"}, "schemaId"),
    ({"issuerDid": "Other"}, "issuerDid"),
]  # fmt: skip


def test_what_cannot_be_a_credential_is_400_and_names_the_place(faber, subtests):
    degree = faber.defines("name", "degree", "age")
    sample = {"definitionId": degree["definitionId"], "values": DEGREE}
    for change, path in IMPOSSIBLE:
        with subtests.test(str(change)):
            error = error_of(tried, faber, sample, sample | change)
            assert_error(error, 400, "invalid_sample")
            assert list(error.body["errors"]) == [f"credentials[1].{path}"]


BAD_BODIES = [
    ({"version": "one"}, "version"), ({"name": None}, "name"),
    ({"attributes": [attribute("a", {})]}, "attributes[0]"),
    ({"credentials": [{}]}, "credentials[0].values"), ({"credentials": {}}, "credentials"),
    ({"credentials": [{"values": {}}] * (MAX_SAMPLES + 1)}, "credentials"),
]  # fmt: skip


def test_a_bad_body_names_the_field(faber, subtests):
    for body, path in BAD_BODIES:
        with subtests.test(str(body)[:80]):
            whole = NAME | {"credentials": []} | body
            error = error_of(faber.post, "/verificationPolicies/try", whole)
            assert error.status == 400
            assert any(name.startswith(path) for name in error.body["errors"])


def test_the_values_of_samples_are_not_logged(faber, caplog):
    caplog.set_level("DEBUG")
    tried(faber, {"values": {"name": "Liddell"}})
    assert "Liddell" not in caplog.text
