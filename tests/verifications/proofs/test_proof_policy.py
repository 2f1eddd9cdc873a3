import pytest

from agency.core.errors import Invalid
from tests.support.presentations import attribute, predicate
from verifications.proofs import proof_policy

NAME = {"policyName": "name"}


def normalise(**members):
    return proof_policy.normalise({"name": "Proof", "version": "1.0"} | members)


def errors(**members):
    with pytest.raises(Invalid) as refused:
        normalise(**members)
    assert refused.value.code == "invalid_policy"
    return set(refused.value.errors)


def test_a_policy_comes_back_in_one_form():
    given = normalise(
        attributes=[
            NAME | {"attributeNames": None, "restrictions": [], "colour": "red"}
        ],
        predicates=[
            predicate("age", ">=", "18", {"issuerDid": "did", "schemaId": None})
        ],
        revocationRequirement=None,
        id="7",
    )
    assert given == {
        "name": "Proof",
        "version": "1.0",
        "attributes": [{"policyName": "name", "attributeNames": ["name"]}],
        "predicates": [
            {
                "policyName": "age",
                "attributeName": "age",
                "predicateType": ">=",
                "predicateValue": 18,
                "restrictions": [{"issuerDid": "did"}],
            }
        ],
    }


def test_text_is_allowed_only_where_the_policy_says_so():
    asked = [
        predicate("a", ">=", 1, allowText=True),
        predicate("b", ">=", 1, allowText=False),
    ]
    first, second = normalise(predicates=asked)["predicates"]
    assert first["allowText"] is True and "allowText" not in second
    asked = [predicate("age", ">=", 1, allowText="yes")]
    assert errors(predicates=asked) == {"predicates[0].allowText"}


@pytest.mark.parametrize("name", ["age#min", "age#max", "age#bound", "age#value:name"])
def test_the_names_of_what_is_asked_for_an_item_are_reserved(name):
    asked = [predicate("age", "<=", 1, policyName=name)]
    assert errors(predicates=asked) == {"predicates[0].policyName"}


def test_a_normalised_policy_stays_as_it_is():
    first = normalise(
        attributes=[
            attribute(
                "who", {"schemaName": "Degree"}, attributeNames=["name", "degree"]
            )
        ],
        predicates=[predicate("age", "==", 18, policyName="eighteen")],
        revocationRequirement={
            "validAt": "2030-01-31T12:00:00+02:00",
            "validNow": False,
        },
    )
    assert proof_policy.normalise(first) == first
    assert first["revocationRequirement"]["validAt"] == "2030-01-31T10:00:00.000000Z"


@pytest.mark.parametrize("version", ["1", "1.0", "1.0.0", "1.0.0-beta.1", "2-rc1"])
def test_a_version_has_one_to_three_numbers_and_maybe_a_pre_release(version):
    assert normalise(version=version, attributes=[NAME])["version"] == version


@pytest.mark.parametrize(
    "version", ["", "v1", "1.0.0.0", "1.", "1.0-", "1.0.0-β", None, 1, "1\n"]
)
def test_any_other_version_is_refused(version):
    assert errors(version=version, attributes=[NAME]) == {"version"}


@pytest.mark.parametrize("name", [None, "", " ", 7])
def test_a_policy_needs_a_name(name):
    assert errors(name=name, attributes=[NAME]) == {"name"}


@pytest.mark.parametrize("nothing", [{}, {"attributes": [], "predicates": None}])
def test_a_policy_asks_for_something(nothing):
    assert errors(**nothing) == {"attributes"}


@pytest.mark.parametrize("value", [21, "21", "+21", 21.0])
def test_whole_numbers_come_as_numbers_or_as_text(value):
    assert (
        normalise(predicates=[predicate("age", ">=", value)])["predicates"][0][
            "predicateValue"
        ]
        == 21
    )


@pytest.mark.parametrize(
    "value", [None, True, 21.5, "21.0", "", "٢١", [], 2**31, -(2**31) - 1]
)
def test_nothing_else_is_a_predicate_value(value):
    assert errors(predicates=[predicate("age", ">=", value)]) == {
        "predicates[0].predicateValue"
    }


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        (">", 2**31 - 1, False),
        (">", 2**31 - 2, True),
        (">=", 2**31 - 1, True),
        ("<", -(2**31), False),
        ("<", -(2**31) + 1, True),
        ("<=", -(2**31), True),
    ],
)
def test_the_next_number_must_fit_32_bits_too(kind, value, fits):
    asked = [predicate("age", kind, value)]
    found = set() if fits and normalise(predicates=asked) else errors(predicates=asked)
    assert found == (set() if fits else {"predicates[0].predicateValue"})


@pytest.mark.parametrize("kind", ["=>", "=", "!=", "", None, []])
def test_unknown_comparisons_are_refused(kind):
    assert errors(predicates=[predicate("age", kind, 18)]) == {
        "predicates[0].predicateType"
    }


@pytest.mark.parametrize(
    "names",
    [
        ["name", ""],
        ["  "],
        [7],
        "name",
        ["Full Name", "fullname"],
        ["n"] * 126,
    ],
)
def test_attribute_names_are_distinct_texts(names):
    asked = [attribute("who", attributeNames=names)]
    assert errors(attributes=asked) == {"attributes[0].attributeNames"}


@pytest.mark.parametrize(
    "items",
    [
        {"attributes": [NAME, NAME]},
        {
            "attributes": [{"policyName": "age"}],
            "predicates": [predicate("age", ">", 1)],
        },
        {"predicates": [predicate("age", ">", 1), predicate("age", "<", 9)]},
    ],
)
def test_two_items_may_not_have_one_name(items):
    assert {path.split(".")[1] for path in errors(**items)} == {"policyName"}


@pytest.mark.parametrize("name", ["age#min", "age#max", "name#value:degree"])
def test_names_that_the_wire_form_needs_are_reserved(name):
    assert errors(attributes=[{"policyName": name}]) == {"attributes[0].policyName"}


def test_an_attribute_item_needs_its_name_and_a_predicate_its_attribute():
    asked = {
        "attributes": [{"attributeNames": ["name"]}],
        "predicates": [predicate("", ">", 1)],
    }
    assert errors(**asked) == {
        "attributes[0].policyName",
        "predicates[0].attributeName",
    }


@pytest.mark.parametrize(
    ("restriction", "path"),
    [
        ({}, ""),
        ({"colour": "red"}, ""),
        ({"schemaId": ""}, ".schemaId"),
        ({"issuerDid": 7}, ".issuerDid"),
        ({"value": {}}, ".value.attributeName"),
        (
            {"value": {"attributeName": "a", "attributeValue": None}},
            ".value.attributeValue",
        ),
        ({"value": "x"}, ".value.attributeValue"),
    ],
)
def test_a_restriction_says_something(restriction, path):
    found = errors(
        attributes=[attribute("name", {"schemaName": "Degree"}, restriction)]
    )
    assert f"attributes[0].restrictions[1]{path}" in found


def test_a_value_may_be_the_empty_text():
    value = {"attributeName": "name", "attributeValue": ""}
    given = normalise(attributes=[attribute("name", {"value": value})])
    assert given["attributes"][0]["restrictions"] == [{"value": value}]


def test_what_a_predicate_hides_cannot_be_required_as_a_value():
    value = {"attributeName": "A ge", "attributeValue": "28"}
    found = errors(predicates=[predicate("age", ">", 18, {"value": value})])
    assert found == {"predicates[0].restrictions[0].value.attributeName"}


@pytest.mark.parametrize(
    "items", ["text", {"a": 1}, ["name"], [None], [{"policyName": "n"}] * 101]
)
def test_items_are_a_short_list_of_objects(items):
    assert errors(attributes=items) == {"attributes"}


def test_attributes_and_predicates_together_are_at_most_100():
    many = [{"policyName": f"a{index}"} for index in range(60)]
    more = [predicate(f"p{index}", ">", 1) for index in range(41)]
    assert errors(attributes=many, predicates=more) == {"attributes"}
    assert normalise(attributes=many, predicates=more[1:])


def test_restrictions_are_bounded():
    fifty = [{"schemaName": f"s{index}"} for index in range(50)]
    many = [attribute(f"a{index}", *fifty) for index in range(20)]
    assert errors(attributes=many) == {"attributes"}
    assert errors(attributes=[attribute("a", *fifty, *fifty, *fifty)]) == {
        "attributes[0].restrictions"
    }


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({}, ""),
        ("now", ""),
        ({"validAt": "soon"}, ".validAt"),
        ({"validAt": 5}, ".validAt"),
        ({"validAt": "0001-01-01T00:00:00+14:00"}, ".validAt"),
        ({"validNow": "yes"}, ".validNow"),
        ({"validNow": True, "validAt": "2030-01-31T12:00:00Z"}, ""),
        ({"validFrom": "2030-01-31T12:00:00Z"}, ""),
        ({"validFrom": "2030-01-31T12:00:00Z", "validNow": False}, ""),
        ({"validFrom": "soon", "validNow": True}, ".validFrom"),
        (
            {
                "validFrom": "2030-01-31T12:00:01Z",
                "validAt": "2030-01-31T13:00:00+01:00",
            },
            ".validFrom",
        ),
    ],
)
def test_a_revocation_requirement_says_when(given, path):
    found = errors(attributes=[NAME], revocationRequirement=given)
    assert found == {f"revocationRequirement{path}"}


def test_a_time_without_a_zone_is_utc_and_may_have_seven_decimals():
    given = normalise(
        attributes=[NAME],
        revocationRequirement={"validAt": "2020-06-16T06:54:43.3524115"},
    )
    assert given["revocationRequirement"] == {"validAt": "2020-06-16T06:54:43.352411Z"}


NOON = 1_700_000_000


def requiring(**requirement):
    return normalise(attributes=[NAME], revocationRequirement=requirement or None)


@pytest.mark.parametrize(
    ("requirement", "time"),
    [
        ({}, None),
        ({"validNow": False}, None),
        ({"validNow": True}, NOON),
        ({"validAt": "2023-11-14T22:13:19.9Z"}, NOON - 1),
        ({"validAt": "2023-11-14T22:14:20Z", "validNow": False}, NOON),
        ({"validAt": "1969-12-31T23:59:59Z"}, 0),
    ],
)
def test_a_requirement_becomes_a_moment_when_it_is_sent(requirement, time):
    written = requiring(**requirement)
    assert proof_policy.non_revoked_at(written, NOON) == time
    assert proof_policy.is_judged_at_receipt(written) is bool(
        requirement.get("validNow")
    )


def test_a_moment_to_come_can_be_kept_but_not_sent():
    written = requiring(validAt="2023-11-14T22:14:21Z")
    with pytest.raises(Invalid) as refused:
        proof_policy.non_revoked_at(written, NOON)
    assert refused.value.code == "not_yet_due"
    assert list(refused.value.errors) == ["revocationRequirement.validAt"]
    assert proof_policy.non_revoked_at(written, NOON + 1) == NOON + 1


def test_the_moment_to_come_is_named():
    item = NAME | {
        "revocationRequirement": {
            "validFrom": "2000-01-01T00:00:00Z",
            "validAt": "2023-11-14T22:14:21Z",
        }
    }
    policy = normalise(attributes=[item], revocationRequirement={"validNow": True})
    with pytest.raises(Invalid) as refused:
        proof_policy.non_revoked_at(policy, NOON)
    named = "attributes[0].revocationRequirement.validAt"
    assert refused.value.code == "not_yet_due" and named in refused.value.message
    assert list(refused.value.errors) == [named]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"validNow": True}, ".validNow"),
        ({}, ""),
        ("now", ""),
        ({"validFrom": "2030-01-31T12:00:00Z"}, ""),
    ],
)
def test_an_item_has_times_only(given, path):
    found = errors(attributes=[NAME | {"revocationRequirement": given}])
    assert found == {f"attributes[0].revocationRequirement{path}"}


def test_all_errors_are_told_at_once():
    found = errors(name="", attributes=[{}], predicates=[predicate("age", "?", None)])
    assert found == {
        "name",
        "attributes[0].policyName",
        "predicates[0].predicateType",
        "predicates[0].predicateValue",
    }
