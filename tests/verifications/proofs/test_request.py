import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agency.core.errors import Invalid, PeerError
from tests.support.presentations import ask, attribute, predicate
from verifications.proofs import proof_policy
from verifications.proofs.proof_items import Interval
from verifications.proofs.request_building import (
    build_request,
    definitions_of_predicates,
)
from verifications.proofs.request_reading import (
    policy_from_request,
    prune_request,
    read_items,
)

ADULT = predicate("age", ">=", 18)
VALUE = {"value": {"attributeName": "degree", "attributeValue": "Maths"}}


def foreign(attributes=None, predicates=None, **head):
    return {
        "name": "Proof",
        "version": "1.0",
        "nonce": "123",
        "requested_attributes": attributes or {},
        "requested_predicates": predicates or {},
    } | head


def compare(kind=">=", value=18, **more):
    return {"name": "age", "p_type": kind, "p_value": value} | more


def only(items):
    (item,) = items
    return item


def test_one_attribute_is_asked_by_name_and_several_as_a_group():
    asked = ask(
        attribute("name"),
        attribute("who", attributeNames=["name", "degree"]),
        nonce="5",
    )
    assert asked == {
        "name": "Proof",
        "version": "1.0",
        "nonce": "5",
        "requested_attributes": {
            "name": {"name": "name"},
            "who": {"names": ["name", "degree"]},
        },
        "requested_predicates": {},
    }


def test_restrictions_go_out_under_their_wire_names():
    restriction = {
        "schemaId": "1",
        "schemaIssuerDid": "2",
        "schemaName": "3",
        "schemaVersion": "4",
        "issuerDid": "5",
        "credentialDefinitionId": "6",
        "value": {"attributeName": "name", "attributeValue": "Alice"},
    }
    asked = ask(attribute("name", restriction))
    assert asked["requested_attributes"] == {
        "name": {
            "name": "name",
            "restrictions": [
                {
                    "schema_id": "1",
                    "schema_issuer_did": "2",
                    "schema_name": "3",
                    "schema_version": "4",
                    "issuer_did": "5",
                    "cred_def_id": "6",
                    "attr::name::value": "Alice",
                }
            ],
        }
    }


def test_an_equality_is_asked_as_two_bounds_and_read_as_one_item():
    asked = ask(predicate("age", "==", 18))
    assert {
        name: one["p_type"] for name, one in asked["requested_predicates"].items()
    } == {
        "age#min": ">=",
        "age#max": "<=",
    }
    item = only(read_items(asked))
    assert (item.policy_name, item.predicate_type, item.threshold) == ("age", "==", 18)
    assert item.comparisons == [(">=", 18), ("<=", 18)]


@pytest.mark.parametrize("kind", [">=", ">"])
@pytest.mark.parametrize("value", [0, 18])
def test_a_comparison_that_a_text_meets_is_asked_with_a_bound_and_read_as_one_item(
    kind, value
):
    asked = ask(predicate("age", kind, value, VALUE), at=7)
    compared = asked["requested_predicates"]
    assert compared["age#bound"] == compared["age"] | {
        "p_type": "<=",
        "p_value": 2147483647,
    }
    item = only(read_items(asked))
    assert (item.policy_name, item.predicate_type, item.threshold) == (
        "age",
        kind,
        value,
    )
    assert item.comparisons == [(kind, value), ("<=", 2147483647)] and item.has_bound
    [shown] = policy_from_request(asked)["predicates"]
    assert (shown["policyName"], shown["predicateType"]) == ("age", kind)


@pytest.mark.parametrize(
    "item",
    [
        predicate("age", "<=", 18),
        predicate("age", "<", 18),
        predicate("age", ">=", -1),
        predicate("age", ">", -1),
        predicate("age", ">=", 18, allowText=True),
    ],
)
def test_no_other_comparison_is_asked_with_a_bound(item):
    asked = ask(item)
    assert list(asked["requested_predicates"]) == ["age"]
    assert not only(read_items(asked)).has_bound


@pytest.mark.parametrize(
    ("restrictions", "has_bound"),
    [
        ([], True),
        ([{"credentialDefinitionId": "a"}], False),
        (
            [{"credentialDefinitionId": "a"}, {"credentialDefinitionId": "b"} | VALUE],
            False,
        ),
        ([{"credentialDefinitionId": "a"}, {"issuerDid": "x"}], True),
        ([{"credentialDefinitionId": "a"}, {"credentialDefinitionId": "other"}], True),
        ([{"credentialDefinitionId": "none"}], True),
    ],
)
def test_no_bound_is_asked_where_nothing_but_integers_meets_the_item(
    restrictions, has_bound
):
    body = {
        "name": "P",
        "version": "1",
        "predicates": [predicate("A ge", ">", 1, *restrictions)],
    }
    written = proof_policy.normalise(body)
    integers = {"a": {"age", "b"}, "b": {"age"}, "other": {"salary"}}
    asked = build_request(written, "5", None, integers)
    assert ("A ge#bound" in asked["requested_predicates"]) is has_bound
    named = {
        one["credentialDefinitionId"] for one in restrictions if "issuerDid" not in one
    }
    assert definitions_of_predicates(written) == named


@pytest.mark.parametrize("part", ["attributes", "predicates"])
@pytest.mark.parametrize("turn", [1, -1])
def test_a_stored_policy_with_an_item_named_as_a_bound_is_refused(part, turn):
    older = {
        "policyName": "age#bound",
        "attributeName": "age",
        "attributeNames": ["age"],
    }
    older |= {"predicateType": "<=", "predicateValue": 30}
    stored = proof_policy.normalise(
        {"name": "P", "version": "1", "predicates": [ADULT]}
    )
    build_request(stored, "5")
    stored[part] = [*stored[part], older][::turn]
    with pytest.raises(Invalid) as refused:
        build_request(stored, "5")
    assert refused.value.code == "invalid_policy"


def test_what_looks_like_a_bound_and_is_none_stays_an_item_of_its_own():
    bound = compare("<=", 2147483647)
    for base, other in (
        (compare("<", 18), bound),
        (compare(">=", -1), bound),
        (compare(">=", 18), compare("<=", 99)),
        (compare(">=", 18), compare("<", 2147483647)),
        (compare(">=", 18), bound | {"name": "height"}),
        (compare(">=", 18), bound | {"restrictions": [{"schema_name": "x"}]}),
        (compare(">=", 18), bound | {"non_revoked": {"to": 7}}),
    ):
        read = read_items(foreign(predicates={"age": base, "age#bound": other}))
        assert [item.policy_name for item in read] == ["age", "age#bound"]
    assert (
        only(read_items(foreign(predicates={"#bound": bound}))).policy_name == "#bound"
    )
    alone = only(read_items(foreign(predicates={"age#bound": bound})))
    assert alone.policy_name == "age#bound"


def test_the_bound_of_another_verifier_is_folded_too():
    asked = foreign(
        {"age": {"name": "name"}},
        {"p#bound": compare("<=", 2147483647), "p": compare(">", 0)},
    )
    assert [item.policy_name for item in read_items(asked)] == ["age", "p"]


def test_a_required_value_is_shown_by_a_companion():
    other = {"schemaName": "Other"}
    asked = ask(predicate("age", ">", 18, VALUE | {"issuerDid": "did"}, other))
    assert asked["requested_attributes"] == {
        "age#value:degree": {
            "name": "degree",
            "restrictions": [{"issuer_did": "did", "attr::degree::value": "Maths"}],
        }
    }
    assert only(read_items(asked)).companions == {"degree": "age#value:degree"}


@pytest.mark.parametrize("names", [["degree"], ["De gree", "name"]])
def test_an_item_that_shows_the_required_value_needs_no_companion(names):
    asked = ask(attribute("who", VALUE, attributeNames=names))
    assert list(asked["requested_attributes"]) == ["who"]


def test_alternatives_that_name_one_attribute_share_a_companion():
    again = {"value": {"attributeName": "DEGREE", "attributeValue": "Law"}}
    asked = ask(attribute("name", VALUE, again))
    companion = asked["requested_attributes"]["name#value:degree"]
    assert [list(one.values()) for one in companion["restrictions"]] == [
        ["Maths"],
        ["Law"],
    ]
    assert len(read_items(asked)) == 1


def test_the_policy_is_read_back_from_its_request():
    items = [
        attribute("who", VALUE, {"issuerDid": "did"}, attributeNames=["name", "age"]),
        attribute("Full Name"),
        predicate("age", "==", 18, VALUE),
        predicate("age", "<", 99, policyName="young"),
    ]
    body = {
        "name": "P",
        "version": "1",
        "attributes": items[:2],
        "predicates": items[2:],
    }
    written = proof_policy.normalise(body)
    assert policy_from_request(build_request(written, "5")) == written


def test_non_revocation_is_asked_for_at_one_moment():
    asked = ask(attribute("name"), predicate("age", "==", 18), at=1_700_000_000)
    assert asked["non_revoked"] == {"from": 1_700_000_000, "to": 1_700_000_000}
    moment = Interval(1_700_000_000, 1_700_000_000)
    assert [item.non_revoked for item in read_items(asked)] == [moment, moment]
    required = policy_from_request(asked)["revocationRequirement"]
    assert required == {"validAt": "2023-11-14T22:13:20.000000Z"}


def test_without_a_moment_non_revocation_is_not_asked_for():
    asked = ask(attribute("name"))
    assert "non_revoked" not in asked and only(read_items(asked)).non_revoked is None
    assert "revocationRequirement" not in policy_from_request(asked)


def test_the_interval_of_an_item_takes_the_place_of_that_of_the_request():
    asked = foreign(
        {
            "a": {"name": "a", "non_revoked": {"to": 7}},
            "b": {"name": "b", "non_revoked": {}},
        },
        {"p": compare(non_revoked={"from": 3})},
        non_revoked={"from": 1, "to": 9},
    )
    found = {item.policy_name: item.non_revoked for item in read_items(asked)}
    assert found == {"a": (None, 7), "b": (1, 9), "p": (3, None)}
    assert policy_from_request(asked)["revocationRequirement"]["validAt"].endswith(
        "00:09.000000Z"
    )


@pytest.mark.parametrize(
    ("intervals", "shown"),
    [
        ([{"to": 7}, {"to": 8}], {"validAt": "1970-01-01T00:00:08.000000Z"}),
        ([{"to": 7}, {"from": 3}], {"validNow": True}),
        ([None, {"to": 7}], {"validAt": "1970-01-01T00:00:07.000000Z"}),
    ],
)
def test_the_latest_interval_of_the_items_is_shown(intervals, shown):
    items = {
        str(n): {"name": "a", "non_revoked": one} for n, one in enumerate(intervals)
    }
    assert policy_from_request(foreign(items))["revocationRequirement"] == shown


@pytest.mark.parametrize("member", ["request", "item"])
@pytest.mark.parametrize(
    "interval",
    ["now", [5], {"to": "5"}, {"to": 5.0}, {"to": True}, {"from": -1}, {"to": 10**12}]
    + [{"from": 6, "to": 5}],
)
def test_an_interval_that_is_none_is_the_peers_fault(member, interval):
    item, head = {"name": "name"}, {}
    (head if member == "request" else item)["non_revoked"] = interval
    with pytest.raises(PeerError) as refused:
        read_items(foreign({"n": item}, **head))
    assert refused.value.code == "request_malformed"


def test_items_of_different_intervals_are_not_folded():
    later = {"non_revoked": {"to": 9}}
    pair = {"x#min": compare(">="), "x#max": compare("<=", **later)}
    assert [one.policy_name for one in read_items(foreign({}, pair))] == [
        "x#min",
        "x#max",
    ]
    restrictions = {"restrictions": [{"attr::degree::value": "Maths"}]}
    shown = {
        "n": {"name": "name"} | restrictions,
        "n#value:degree": {"name": "degree"},
    }
    shown["n#value:degree"] |= restrictions | later
    assert len(read_items(foreign(shown))) == 2


NAMES = st.text("ab #:", min_size=1, max_size=4)
RESTRICTIONS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "issuerDid": NAMES,
            "value": st.fixed_dictionaries(
                {"attributeName": NAMES, "attributeValue": NAMES}
            ),
        },
    ),
    max_size=3,
)
ATTRIBUTES = st.fixed_dictionaries(
    {"policyName": NAMES, "attributeNames": st.lists(NAMES, max_size=2)},
    optional={"restrictions": RESTRICTIONS},
)
PREDICATES = st.fixed_dictionaries(
    {
        "policyName": NAMES,
        "attributeName": NAMES,
        "predicateType": st.sampled_from([">=", ">", "<=", "<", "=="]),
        "predicateValue": st.integers(-9, 9),
    },
    optional={"restrictions": RESTRICTIONS},
)


@settings(deadline=None)
@given(st.lists(ATTRIBUTES, max_size=3), st.lists(PREDICATES, max_size=3))
def test_any_valid_policy_survives_the_wire(attributes, predicates):
    body = {
        "name": "P",
        "version": "1",
        "attributes": attributes,
        "predicates": predicates,
    }
    try:
        written = proof_policy.normalise(body)
    except Invalid:
        return
    assert policy_from_request(build_request(written, "5")) == written


def test_a_foreign_request_keeps_its_referents_as_names():
    asked = foreign(
        {"0_name_uuid": {"name": "name", "restrictions": [{"cred_def_id": "d"}]}},
        {"0_age_GE_uuid": compare(restrictions=None)},
    )
    assert policy_from_request(asked) == {
        "name": "Proof",
        "version": "1.0",
        "attributes": [
            {
                "policyName": "0_name_uuid",
                "attributeNames": ["name"],
                "restrictions": [{"credentialDefinitionId": "d"}],
            }
        ],
        "predicates": [
            {
                "policyName": "0_age_GE_uuid",
                "attributeName": "age",
                "predicateType": ">=",
                "predicateValue": 18,
            }
        ],
    }


def test_newer_names_of_issuers_are_read_and_markers_of_the_item_itself_dropped():
    tags = {
        "issuer_id": "i",
        "schema_issuer_id": "s",
        "attr::NAME::marker": "1",
        "rev_reg_id": None,
    }
    item = only(read_items(foreign({"n": {"name": "name", "restrictions": [tags]}})))
    assert item.restrictions == [{"issuerDid": "i", "schemaIssuerDid": "s"}]


@pytest.mark.parametrize("empty", [None, [], [{}], [{"schema_name": "Degree"}, {}]])
def test_an_alternative_that_demands_nothing_lifts_the_restrictions(empty):
    item = only(read_items(foreign({"n": {"name": "name", "restrictions": empty}})))
    assert item.restrictions == []


@pytest.mark.parametrize(
    "pair",
    [
        {"x#min": compare(">="), "x#max": compare("<=", 19)},
        {"x#min": compare("<="), "x#max": compare(">=")},
        {"x#min": compare(">="), "x#max": compare("<=", name="Age")},
        {
            "x#min": compare(">="),
            "x#max": compare("<=", restrictions=[{"schema_id": "s"}]),
        },
        {"x#min": compare(">="), "x#max": compare("<="), "x": compare(">")},
        {"x#min": compare(">=")},
        {"x#max": compare("<=")},
    ],
)
def test_only_a_true_equality_is_folded(pair):
    assert [one.policy_name for one in read_items(foreign({}, pair))] == list(pair)


@pytest.mark.parametrize(
    "companion",
    [
        {"name": "degree"},
        {"name": "age"},
        {
            "names": ["degree", "age"],
            "restrictions": [{"attr::degree::value": "Maths"}],
        },
        {"name": "degree", "restrictions": [{"attr::degree::value": "Law"}]},
    ],
)
def test_only_a_true_companion_is_folded(companion):
    item = {"name": "name", "restrictions": [{"attr::degree::value": "Maths"}]}
    asked = foreign({"n": item, "n#value:degree": companion})
    assert [one.policy_name for one in read_items(asked)] == ["n", "n#value:degree"]


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        foreign(),
        foreign({"n": {"name": "name"}}, name=None),
        foreign({"n": {"name": "name"}}, version=1),
        foreign({"n": {"name": "name"}}, nonce="-5"),
        foreign({"n": {"name": "name"}}, nonce="b0b"),
        foreign({"n": {"name": "name"}}, nonce="٣"),
        foreign({"n": {"name": "name"}}, nonce=5),
        foreign(["name"]),
        foreign({"n": "name"}),
        foreign({"n": {}}),
        foreign({"n": {"name": " "}}),
        foreign({"n": {"name": "a", "names": ["b"]}}),
        foreign({"n": {"names": []}}),
        foreign({"n": {"names": ["a", "A"]}}),
        foreign({}, {"p": compare(name=None)}),
        foreign({"x": {"name": "age"}}, {"x": compare()}),
    ],
)
def test_a_request_of_another_shape_is_the_peers_fault(wrong):
    with pytest.raises(PeerError) as refused:
        read_items(wrong)
    assert refused.value.code == "request_malformed"


@pytest.mark.parametrize(
    "wrong",
    [
        compare("=="),
        compare(None),
        compare([]),
        compare(value="18"),
        compare(value=True),
        compare(value=18.0),
        compare(value=2**31),
        compare(">", 2**31 - 1),
        compare("<", -(2**31)),
    ],
)
def test_a_predicate_that_cannot_be_proven_is_the_peers_fault(wrong):
    with pytest.raises(PeerError) as refused:
        read_items(foreign({}, {"p": wrong}))
    assert refused.value.code == "predicate_unsupported"


@pytest.mark.parametrize(
    "restrictions",
    [
        {"$or": []},
        ["text"],
        [{"rev_reg_id": "r"}],
        [{"$not": {"schema_id": "s"}}],
        [{"schema_id": 7}],
        [{"attr::degree::marker": "1"}],
        [{"attr::a::value": "1", "attr::b::value": "2"}],
        [{"issuer_id": "i", "issuer_did": "i"}],
    ],
)
def test_a_restriction_we_cannot_keep_is_not_ignored(restrictions):
    with pytest.raises(PeerError) as refused:
        read_items(foreign({"n": {"name": "name", "restrictions": restrictions}}))
    assert refused.value.code == "restriction_unsupported"


@pytest.mark.parametrize(
    "attributes",
    [
        {str(index): {"name": "a"} for index in range(101)},
        {str(index): {"name": "a"} for index in range(1001)},
        {"n": {"names": [str(index) for index in range(126)]}},
        {"n": {"name": "a", "restrictions": [{"schema_id": "s"}] * 101}},
    ],
)
def test_a_request_is_bounded(attributes):
    with pytest.raises(PeerError) as refused:
        read_items(foreign(attributes))
    assert refused.value.code == "request_too_large"


def test_a_hundred_equalities_with_companions_are_a_hundred_items():
    items = [predicate(f"a{index}", "==", 1, VALUE) for index in range(100)]
    assert len(read_items(ask(*items))) == 100


def test_a_request_is_pruned_to_what_is_answered():
    asked = ask(
        attribute("name", VALUE),
        attribute("age"),
        predicate("age", ">", 1, policyName="p"),
    )
    kept = prune_request(asked, ["name", "p"])
    assert list(kept["requested_attributes"]) == ["name"]
    assert (
        kept["requested_attributes"]["name"] == asked["requested_attributes"]["name"]
    )
    bare = prune_request(
        asked | {"non_revoked": {"to": 5}}, ["p", "name"], keep_conditions=False
    )
    assert "non_revoked" not in bare
    assert bare["requested_attributes"] == {"name": {"name": "name"}}
    assert bare["nonce"] == asked["nonce"] and list(bare["requested_predicates"]) == [
        "p"
    ]
