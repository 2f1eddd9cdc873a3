import pytest

from core.errors import Invalid
from tests.support.errors import refusal
from tests.support.presentations import attribute, policy_of, predicate, required
from verifications.proofs import proof_policy
from verifications.proofs.policy import OPEN_SECONDS

NAME = {"policyName": "name"}


def parse(*items, **members):
    return proof_policy.normalise(policy_of(*items, **members))


def normalise(*items, **members):
    return parse(*items, **members).to_json()


def errors(*items, **members):
    refused = refusal(Invalid, proof_policy.normalise, policy_of(*items, **members))
    assert refused.code == "invalid_policy"
    return set(refused.errors)


def test_a_policy_comes_back_in_one_form():
    given = normalise(
        NAME | {"attributeNames": None, "restrictions": [], "colour": "red"},
        predicate("age", ">=", "18", {"issuerDid": "did", "schemaId": None}),
        revocationRequirement=None,
        id="7",
    )
    shown = {"policyName": "name", "attributeNames": ["name"]}
    compared = predicate("age", ">=", 18, {"issuerDid": "did"}, policyName="age")
    assert given == policy_of(shown, compared)


def test_text_is_allowed_only_where_the_policy_says_so():
    allowing, refusing, unclear = (
        predicate(str(says), ">=", 1, allowText=says) for says in (True, False, "yes")
    )
    first, second = normalise(allowing, refusing)["predicates"]
    assert first["allowText"] is True and "allowText" not in second
    assert errors(unclear) == {"predicates[0].allowText"}


@pytest.mark.parametrize("name", ["age#min", "age#max", "age#bound", "age#value:name"])
def test_the_names_of_what_is_asked_for_an_item_are_reserved(name):
    compared = predicate("age", "<=", 1, policyName=name)
    assert errors(compared) == {"predicates[0].policyName"}
    if name != "age#bound":
        assert errors(attribute(name)) == {"attributes[0].policyName"}


def test_a_normalised_policy_stays_as_it_is():
    first = normalise(
        attribute("who", {"schemaName": "Degree"}, attributeNames=["name", "degree"]),
        predicate("age", "==", 18, policyName="eighteen"),
        revocationRequirement={
            "validAt": "2030-01-31T12:00:00+02:00",
            "validNow": False,
        },
    )
    assert proof_policy.normalise(first).to_json() == first
    assert first["revocationRequirement"]["validAt"] == "2030-01-31T10:00:00.000000Z"


def test_a_version_has_one_to_three_numbers_and_maybe_a_pre_release():
    for version in ("1", "1.0", "1.0.0", "1.0.0-beta.1", "2-rc1"):
        assert normalise(NAME, version=version)["version"] == version
    for other in ("", "v1", "1.0.0.0", "1.", "1.0-", "1.0.0-β", None, 1, "1\n"):
        assert errors(NAME, version=other) == {"version"}


def test_a_policy_has_a_name_and_asks_for_something():
    for name in (None, "", " ", 7):
        assert errors(NAME, name=name) == {"name"}
    for nothing in ({}, {"attributes": [], "predicates": None}):
        assert errors(**nothing) == {"attributes"}


def test_whole_numbers_come_as_numbers_or_as_text_and_nothing_else_does():
    for value in (21, "21", "+21", 21.0):
        [found] = normalise(predicate("age", ">=", value))["predicates"]
        assert found["predicateValue"] == 21
    for value in (None, True, 21.5, "21.0", "", "٢١", [], 2**31, -(2**31) - 1):
        found = errors(predicate("age", ">=", value))
        assert found == {"predicates[0].predicateValue"}


@pytest.mark.parametrize(("kind", "value", "fits"), [
    (">", 2**31 - 1, False), (">", 2**31 - 2, True), (">=", 2**31 - 1, True),
    ("<", -(2**31), False), ("<", -(2**31) + 1, True), ("<=", -(2**31), True),
])  # fmt: skip
def test_the_next_number_must_fit_32_bits_too(kind, value, fits):
    compared = predicate("age", kind, value)
    if fits:
        assert normalise(compared)["predicates"][0]["predicateValue"] == value
    else:
        assert errors(compared) == {"predicates[0].predicateValue"}


def test_comparisons_are_known_and_attribute_names_are_distinct_texts():
    for kind in ("=>", "=", "!=", "", None, []):
        found = errors(predicate("age", kind, 18))
        assert found == {"predicates[0].predicateType"}
    texts = ["Full Name", "fullname"], ["n"] * 126, ["name", ""], ["  "]
    for names in (*texts, [7], "name"):
        found = errors(attribute("who", attributeNames=names))
        assert found == {"attributes[0].attributeNames"}


def test_two_items_may_not_have_one_name():
    more, less = predicate("age", ">", 1), predicate("age", "<", 9)
    for items in ((NAME, NAME), (attribute("age"), more), (more, less)):
        assert {path.split(".")[1] for path in errors(*items)} == {"policyName"}


def test_an_attribute_item_needs_its_name_and_a_predicate_its_attribute():
    found = errors({"attributeNames": ["name"]}, predicate("", ">", 1))
    assert found == {"attributes[0].policyName", "predicates[0].attributeName"}


@pytest.mark.parametrize(("restriction", "path"), [
    ({}, ""), ({"colour": "red"}, ""), ({"schemaId": ""}, ".schemaId"),
    ({"issuerDid": 7}, ".issuerDid"), ({"value": {}}, ".value.attributeName"),
    (required("a", None), ".value.attributeValue"),
    ({"value": "x"}, ".value.attributeValue"), ({"vct": ""}, ".vct"),
    ({"vct": "v", "provenBy": ["over"]}, ".provenBy"),
])  # fmt: skip
def test_a_restriction_says_something(restriction, path):
    found = errors(attribute("name", {"schemaName": "Degree"}, restriction))
    assert f"attributes[0].restrictions[1]{path}" in found


@pytest.mark.parametrize(("restriction", "path"), [
    ({"provenBy": ["over_18"]}, ""), ({"vct": "v", "provenBy": "over"}, ".provenBy"),
    ({"vct": "v", "provenBy": [""]}, ".provenBy"),
    ({"vct": "v", "provenBy": [f"over_{n}" for n in range(11)]}, ".provenBy"),
])  # fmt: skip
def test_claims_that_prove_a_predicate_are_of_some_credential(restriction, path):
    found = errors(predicate("age", ">", 18, restriction))
    assert found == {f"predicates[0].restrictions[0]{path}"}


def test_what_is_of_an_sd_jwt_vc_is_kept():
    of_state = {"vct": "urn:eu:pid", "provenBy": ["over_18"]}
    given = normalise(predicate("age", ">", 18, of_state, {"schemaId": "s"}))
    assert given["predicates"][0]["restrictions"] == [of_state, {"schemaId": "s"}]


def test_a_value_may_be_the_empty_text_but_not_what_a_predicate_hides():
    given = normalise(attribute("name", required("name", "")))
    assert given["attributes"][0]["restrictions"] == [required("name", "")]
    found = errors(predicate("age", ">", 18, required("A ge", "28")))
    assert found == {"predicates[0].restrictions[0].value.attributeName"}


def test_items_are_a_short_list_of_objects_at_most_100_together():
    for items in ("text", {"a": 1}, ["name"], [None], [{"policyName": "n"}] * 101):
        assert errors(attributes=items) == {"attributes"}
    many = [{"policyName": f"a{index}"} for index in range(60)]
    more = [predicate(f"p{index}", ">", 1) for index in range(41)]
    assert errors(*many, *more) == {"attributes"}
    assert normalise(*many, *more[1:])


def test_restrictions_are_bounded():
    fifty = [{"schemaName": f"s{index}"} for index in range(50)]
    many = [attribute(f"a{index}", *fifty) for index in range(20)]
    assert errors(*many) == {"attributes"}
    found = errors(attribute("a", *fifty, *fifty, *fifty))
    assert found == {"attributes[0].restrictions"}


@pytest.mark.parametrize(("given", "path"), [
    ({}, ""), ("now", ""), ({"validAt": "soon"}, ".validAt"), ({"validAt": 5}, ".validAt"),
    ({"validAt": "0001-01-01T00:00:00+14:00"}, ".validAt"),
    ({"validNow": "yes"}, ".validNow"),
    ({"validNow": True, "validAt": "2030-01-31T12:00:00Z"}, ""),
    ({"validFrom": "2030-01-31T12:00:00Z"}, ""),
    ({"validFrom": "2030-01-31T12:00:00Z", "validNow": False}, ""),
    ({"validFrom": "soon", "validNow": True}, ".validFrom"),
    ({"validNow": True, "graceSeconds": -1}, ".graceSeconds"),
    ({"validNow": True, "graceSeconds": 3601}, ".graceSeconds"),
    ({"validNow": True, "graceSeconds": "long"}, ".graceSeconds"),
    ({"validNow": True, "graceSeconds": True}, ".graceSeconds"),
    ({"validAt": "2030-01-31T12:00:00Z", "graceSeconds": 5}, ".graceSeconds"),
    ({"graceSeconds": 5}, ".graceSeconds"),
    ({"validFrom": "2030-01-31T12:00:01Z", "validAt": "2030-01-31T13:00:00+01:00"},
     ".validFrom"),
])  # fmt: skip
def test_a_revocation_requirement_says_when(given, path):
    found = errors(NAME, revocationRequirement=given)
    assert found == {f"revocationRequirement{path}"}


def test_a_time_without_a_zone_is_utc_and_may_have_seven_decimals():
    given = requiring(validAt="2020-06-16T06:54:43.3524115").requirement
    assert given.to_json() == {"validAt": "2020-06-16T06:54:43.352411Z"}


NOON = 1_700_000_000


def requiring(**requirement):
    return parse(NAME, revocationRequirement=requirement or None)


@pytest.mark.parametrize(("requirement", "time"), [
    ({}, None), ({"validNow": False}, None),
    ({"validNow": True}, NOON + OPEN_SECONDS),
    ({"validAt": "2023-11-14T22:13:19.9Z"}, NOON - 1),
    ({"validAt": "2023-11-14T22:14:20Z", "validNow": False}, NOON),
    ({"validAt": "1969-12-31T23:59:59Z"}, 0),
])  # fmt: skip
def test_a_requirement_becomes_a_moment_when_it_is_sent(requirement, time):
    written = requiring(**requirement)
    assert written.non_revoked_at(NOON) == time
    assert written.is_judged_at_receipt is bool(requirement.get("validNow"))


@pytest.mark.parametrize(("requirement", "requested", "start"), [
    ({}, NOON - 30, NOON - 31),
    ({}, NOON - 90, NOON - 60),
    ({"graceSeconds": 3600}, NOON - 90, NOON - 91),
    ({"graceSeconds": 0}, NOON - 90, NOON),
    ({"graceSeconds": "0"}, NOON, NOON),
    ({"validFrom": "2023-11-14T21:13:20Z"}, NOON - 90, NOON - 3600),
    ({"validFrom": "2023-11-14T22:13:20Z"}, NOON - 90, NOON - 60),
])  # fmt: skip
def test_valid_now_accepts_lists_superseded_since_the_request_and_for_a_while(
    requirement, requested, start
):
    written = requiring(validNow=True, **requirement)
    interval = written.interval_at_receipt(requested, NOON)
    assert interval == (start, None)
    assert requiring().interval_at_receipt(requested, NOON) is None


def test_a_moment_to_come_can_be_kept_but_not_sent():
    written = requiring(validAt="2023-11-14T22:14:21Z")
    refused = refusal(Invalid, written.non_revoked_at, NOON)
    assert refused.code == "not_yet_due"
    assert list(refused.errors) == ["revocationRequirement.validAt"]
    assert written.non_revoked_at(NOON + 1) == NOON + 1


def test_the_moment_to_come_is_named():
    interval = {"validFrom": "2000-01-01T00:00:00Z", "validAt": "2023-11-14T22:14:21Z"}
    item = NAME | {"revocationRequirement": interval}
    policy = parse(item, revocationRequirement={"validNow": True})
    refused = refusal(Invalid, policy.non_revoked_at, NOON)
    named = "attributes[0].revocationRequirement.validAt"
    assert refused.code == "not_yet_due" and named in refused.message
    assert list(refused.errors) == [named]


@pytest.mark.parametrize(("given", "path"), [
    ({"validNow": True}, ".validNow"), ({}, ""), ("now", ""),
    ({"validFrom": "2030-01-31T12:00:00Z"}, ""),
])  # fmt: skip
def test_an_item_has_times_only(given, path):
    found = errors(NAME | {"revocationRequirement": given})
    assert found == {f"attributes[0].revocationRequirement{path}"}


def test_all_errors_are_told_at_once():
    found = errors({}, predicate("age", "?", None), name="")
    assert found == {
        "name",
        "attributes[0].policyName",
        "predicates[0].predicateType",
        "predicates[0].predicateValue",
    }
