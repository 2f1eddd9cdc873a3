import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import Conflict, Invalid, PeerError
from tests.support.errors import refusal
from tests.support.presentations import ask, attribute, policy_of, predicate, required
from verifications.proofs import proof_policy
from verifications.proofs.policy import NO_REQUIREMENT, Policy
from verifications.proofs.proof_items import Interval
from verifications.proofs.request_building import (
    build_request,
    definitions_of_predicates,
)
from verifications.proofs.request_reading import ProofRequest

ADULT = predicate("age", ">=", 18)
VALUE = required("degree", "Maths")
MATHS = {"restrictions": [{"attr::degree::value": "Maths"}]}
WIRE_NAMES = {
    "schemaId": "schema_id", "schemaIssuerDid": "schema_issuer_did",
    "schemaName": "schema_name", "schemaVersion": "schema_version",
    "issuerDid": "issuer_did", "credentialDefinitionId": "cred_def_id",
}  # fmt: skip


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


def normalise(*items):
    return proof_policy.normalise(policy_of(*items))


def read_items(request):
    return ProofRequest.parse(request).items


def policy_from_request(request):
    return ProofRequest.parse(request).to_policy()


def only(items):
    (item,) = items
    return item


def names_read(*parts):
    """The names of the items of another verifier's request."""
    return [item.policy_name for item in read_items(foreign(*parts))]


def code_of_refusal(*parts, **head):
    return refusal(PeerError, read_items, foreign(*parts, **head)).code


def test_attributes_are_asked_by_name_or_as_a_group_and_restrictions_by_wire_names():
    group = attribute("who", attributeNames=["name", "degree"])
    assert ask(attribute("name"), group, nonce="123") == foreign(
        {"name": {"name": "name"}, "who": {"names": ["name", "degree"]}}
    )
    restriction = {name: f"a {name}" for name in WIRE_NAMES}
    asked = ask(attribute("name", restriction | required("name", "Alice")))
    wired = {WIRE_NAMES[name]: text for name, text in restriction.items()}
    restrictions = [wired | {"attr::name::value": "Alice"}]
    expected = {"name": {"name": "name", "restrictions": restrictions}}
    assert asked["requested_attributes"] == expected


def test_an_equality_is_asked_as_two_bounds_and_read_as_one_item():
    asked = ask(predicate("age", "==", 18))
    compared = asked["requested_predicates"].items()
    kinds = {name: one["p_type"] for name, one in compared}
    assert kinds == {"age#min": ">=", "age#max": "<="}
    item = only(read_items(asked))
    assert (item.policy_name, item.predicate_type, item.threshold) == ("age", "==", 18)
    assert item.comparisons == [(">=", 18), ("<=", 18)]


@pytest.mark.parametrize("kind", [">=", ">"])
@pytest.mark.parametrize("least", [0, 18])
def test_a_comparison_that_a_text_meets_has_a_bound_and_is_one_item(kind, least):
    value = least - 1 if kind == ">" else least
    asked = ask(predicate("age", kind, value, VALUE), at=7)
    compared = asked["requested_predicates"]
    bound = {"p_type": "<=", "p_value": 2147483647}
    assert compared["age#bound"] == compared["age"] | bound
    item = only(read_items(asked))
    found = (item.policy_name, item.predicate_type, item.threshold)
    assert found == ("age", kind, value)
    assert item.comparisons == [(kind, value), ("<=", 2147483647)] and item.has_bound
    [shown] = policy_from_request(asked).predicates
    assert (shown.policy_name, shown.predicate_type) == ("age", kind)


@pytest.mark.parametrize("item", [
    predicate("age", "<=", 18), predicate("age", "<", 18), predicate("age", ">=", -1),
    predicate("age", ">", -2),
    predicate("age", ">=", 18, allowText=True),
])  # fmt: skip
def test_no_other_comparison_is_asked_with_a_bound(item):
    asked = ask(item)
    assert list(asked["requested_predicates"]) == ["age"]
    assert not only(read_items(asked)).has_bound


@pytest.mark.parametrize(("restrictions", "has_bound"), [
    ([], True),
    ([{"credentialDefinitionId": "a"}], False),
    (
        [{"credentialDefinitionId": "a"}, {"credentialDefinitionId": "b"} | VALUE],
        False,
    ),
    ([{"credentialDefinitionId": "a"}, {"issuerDid": "x"}], True),
    ([{"credentialDefinitionId": "a"}, {"credentialDefinitionId": "other"}], True),
    ([{"credentialDefinitionId": "none"}], True),
])  # fmt: skip
def test_no_bound_is_asked_where_only_integers_meet_the_item(restrictions, has_bound):
    written = normalise(predicate("A ge", ">", 1, *restrictions))
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
    older = predicate("age", "<=", 30, policyName="age#bound", attributeNames=["age"])
    stored = normalise(ADULT)
    build_request(stored, "5")
    body = stored.to_json()
    stored = Policy.from_json(body | {part: [*body[part], older][::turn]})
    assert refusal(Invalid, build_request, stored, "5").code == "invalid_policy"


def test_only_a_true_bound_of_another_verifier_is_folded():
    bound = compare("<=", 2147483647)
    for base, other in (
        (compare("<", 18), bound), (compare(">=", -1), bound),
        (compare(">", -2), bound),
        (compare(">=", 18), compare("<=", 99)),
        (compare(">=", 18), compare("<", 2147483647)),
        (compare(">=", 18), bound | {"name": "height"}),
        (compare(">=", 18), bound | {"restrictions": [{"schema_name": "x"}]}),
        (compare(">=", 18), bound | {"non_revoked": {"to": 7}}),
    ):  # fmt: skip
        found = names_read({}, {"age": base, "age#bound": other})
        assert found == ["age", "age#bound"]
    for alone in ("#bound", "age#bound"):
        assert names_read({}, {alone: bound}) == [alone]
    compared = {"p#bound": bound, "p": compare(">", -1)}
    assert names_read({"age": {"name": "name"}}, compared) == ["age", "p"]


def test_a_required_value_is_shown_by_a_companion_or_by_its_item():
    other = {"schemaName": "Other"}
    asked = ask(predicate("age", ">", 18, VALUE | {"issuerDid": "did"}, other))
    restrictions = [{"issuer_did": "did", "attr::degree::value": "Maths"}]
    companion = {"name": "degree", "restrictions": restrictions}
    assert asked["requested_attributes"] == {"age#value:degree": companion}
    assert only(read_items(asked)).companions == {"degree": "age#value:degree"}
    for names in (["degree"], ["De gree", "name"]):
        asked = ask(attribute("who", VALUE, attributeNames=names))
        assert list(asked["requested_attributes"]) == ["who"]


def test_alternatives_that_name_one_attribute_share_a_companion():
    asked = ask(attribute("name", VALUE, required("DEGREE", "Law")))
    companion = asked["requested_attributes"]["name#value:degree"]
    texts = [list(one.values()) for one in companion["restrictions"]]
    assert texts == [["Maths"], ["Law"]]
    assert len(read_items(asked)) == 1


def test_the_policy_is_read_back_from_its_request():
    written = normalise(
        attribute("who", VALUE, {"issuerDid": "did"}, attributeNames=["name", "age"]),
        attribute("Full Name"),
        predicate("age", "==", 18, VALUE),
        predicate("age", "<", 99, policyName="young"),
    )
    assert policy_from_request(build_request(written, "5")) == written


def test_non_revocation_is_asked_for_at_one_moment_if_there_is_one():
    asked = ask(attribute("name"), predicate("age", "==", 18), at=1_700_000_000)
    assert asked["non_revoked"] == {"from": 1_700_000_000, "to": 1_700_000_000}
    moment = Interval(1_700_000_000, 1_700_000_000)
    assert [item.non_revoked for item in read_items(asked)] == [moment, moment]
    required = policy_from_request(asked).requirement
    assert required.valid_at == "2023-11-14T22:13:20.000000Z"
    asked = ask(attribute("name"))
    assert "non_revoked" not in asked and only(read_items(asked)).non_revoked is None
    assert policy_from_request(asked).requirement == NO_REQUIREMENT


def test_valid_now_has_no_start_that_wallets_would_have_to_reach():
    body = policy_of(attribute("name"), revocationRequirement={"validNow": True})
    written = proof_policy.normalise(body)
    asked = build_request(written, "5", int(time.time()) + 60)
    assert asked["non_revoked"].keys() == {"to"}
    assert policy_from_request(asked) == written


def test_the_interval_of_an_item_takes_the_place_of_that_of_the_request():
    first = {"name": "a", "non_revoked": {"to": 7}}
    shown = {"a": first, "b": {"name": "b", "non_revoked": {}}}
    compared = {"p": compare(non_revoked={"from": 3})}
    asked = foreign(shown, compared, non_revoked={"from": 1, "to": 9})
    found = {item.policy_name: item.non_revoked for item in read_items(asked)}
    assert found == {"a": (None, 7), "b": (1, 9), "p": (3, None)}
    latest = policy_from_request(asked).requirement
    assert latest.valid_at.endswith("00:09.000000Z")


@pytest.mark.parametrize(("intervals", "shown"), [
    ([{"to": 7}, {"to": 8}], {"validAt": "1970-01-01T00:00:08.000000Z"}),
    ([{"to": 7}, {"from": 3}], {"validNow": True}),
    ([None, {"to": 7}], {"validAt": "1970-01-01T00:00:07.000000Z"}),
])  # fmt: skip
def test_the_latest_interval_of_the_items_is_shown(intervals, shown):
    items = {
        str(n): {"name": "a", "non_revoked": one} for n, one in enumerate(intervals)
    }
    assert policy_from_request(foreign(items)).requirement.to_json() == shown


@pytest.mark.parametrize("member", ["request", "item"])
@pytest.mark.parametrize(
    "interval",
    ["now", [5], {"to": "5"}, {"to": 5.0}, {"to": True}, {"from": -1}, {"to": 10**12}]
    + [{"from": 6, "to": 5}],
)
def test_an_interval_that_is_none_is_the_peers_fault(member, interval):
    item, head = {"name": "name"}, {}
    (head if member == "request" else item)["non_revoked"] = interval
    assert code_of_refusal({"n": item}, **head) == "request_malformed"


def test_items_of_different_intervals_are_not_folded():
    later = {"non_revoked": {"to": 9}}
    pair = {"x#min": compare(">="), "x#max": compare("<=", **later)}
    assert names_read({}, pair) == ["x#min", "x#max"]
    companion = {"name": "degree"} | MATHS | later
    shown = {"n": {"name": "name"} | MATHS, "n#value:degree": companion}
    assert names_read(shown) == list(shown)


NAMES = st.text("ab #:", min_size=1, max_size=4)
VALUES = st.fixed_dictionaries({"attributeName": NAMES, "attributeValue": NAMES})
RESTRICTIONS = st.lists(
    st.fixed_dictionaries({}, optional={"issuerDid": NAMES, "value": VALUES}),
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
    try:
        written = normalise(*attributes, *predicates)
    except Invalid:
        return
    assert policy_from_request(build_request(written, "5")) == written


def test_a_foreign_request_keeps_its_referents_as_names():
    asked = foreign(
        {"0_name_uuid": {"name": "name", "restrictions": [{"cred_def_id": "d"}]}},
        {"0_age_GE_uuid": compare(restrictions=None)},
    )
    restriction = {"credentialDefinitionId": "d"}
    shown = attribute("0_name_uuid", restriction, attributeNames=["name"])
    compared = predicate("age", ">=", 18, policyName="0_age_GE_uuid")
    assert policy_from_request(asked) == normalise(shown, compared)


def test_newer_names_of_issuers_are_read_and_what_demands_nothing_is_dropped():
    def restrictions(read):
        asked = foreign({"n": {"name": "name", "restrictions": read}})
        return [one.to_json() for one in only(read_items(asked)).restrictions]

    tags = {"issuer_id": "i", "schema_issuer_id": "s", "rev_reg_id": None}
    named = [{"issuerDid": "i", "schemaIssuerDid": "s"}]
    assert restrictions([tags | {"attr::NAME::marker": "1"}]) == named
    for empty in (None, [], [{}], [{"schema_name": "Degree"}, {}]):
        assert restrictions(empty) == []


@pytest.mark.parametrize("pair", [
    {"x#min": compare(">="), "x#max": compare("<=", 19)},
    {"x#min": compare("<="), "x#max": compare(">=")},
    {"x#min": compare(">="), "x#max": compare("<=", name="Age")},
    {"x#min": compare(">="), "x#max": compare("<=", **MATHS)},
    {"x#min": compare(">="), "x#max": compare("<="), "x": compare(">")},
    {"x#min": compare(">=")}, {"x#max": compare("<=")},
])  # fmt: skip
def test_only_a_true_equality_is_folded(pair):
    assert names_read({}, pair) == list(pair)


@pytest.mark.parametrize("companion", [
    {"name": "degree"}, {"name": "age"}, {"names": ["degree", "age"]} | MATHS,
    {"name": "degree", "restrictions": [{"attr::degree::value": "Law"}]},
])  # fmt: skip
def test_only_a_true_companion_is_folded(companion):
    shown = {"n": {"name": "name"} | MATHS, "n#value:degree": companion}
    assert names_read(shown) == list(shown)


@pytest.mark.parametrize("wrong", [
    None, [], {}, foreign(),
    foreign({"n": {"name": "name"}}, name=None),
    foreign({"n": {"name": "name"}}, version=1),
    foreign({"n": {"name": "name"}}, nonce="-5"),
    foreign({"n": {"name": "name"}}, nonce="b0b"),
    foreign({"n": {"name": "name"}}, nonce="٣"),
    foreign({"n": {"name": "name"}}, nonce=5),
    foreign(["name"]), foreign({"n": "name"}), foreign({"n": {}}),
    foreign({"n": {"name": " "}}),
    foreign({"n": {"name": "a", "names": ["b"]}}),
    foreign({"n": {"names": []}}), foreign({"n": {"names": ["a", "A"]}}),
    foreign({}, {"p": compare(name=None)}),
    foreign({"x": {"name": "age"}}, {"x": compare()}),
])  # fmt: skip
def test_a_request_of_another_shape_is_the_peers_fault(wrong):
    assert refusal(PeerError, read_items, wrong).code == "request_malformed"


@pytest.mark.parametrize("wrong", [
    compare("=="), compare(None), compare([]), compare(value="18"),
    compare(value=True), compare(value=18.0), compare(value=2**31),
    compare(">", 2**31 - 1), compare("<", -(2**31)),
])  # fmt: skip
def test_a_predicate_that_cannot_be_proven_is_the_peers_fault(wrong):
    assert code_of_refusal({}, {"p": wrong}) == "predicate_unsupported"


@pytest.mark.parametrize("restrictions", [
    {"$or": []}, ["text"], [{"rev_reg_id": "r"}], [{"$not": {"schema_id": "s"}}],
    [{"schema_id": 7}], [{"attr::degree::marker": "1"}],
    [{"attr::a::value": "1", "attr::b::value": "2"}],
    [{"issuer_id": "i", "issuer_did": "i"}],
])  # fmt: skip
def test_a_restriction_we_cannot_keep_is_not_ignored(restrictions):
    item = {"name": "name", "restrictions": restrictions}
    assert code_of_refusal({"n": item}) == "restriction_unsupported"


@pytest.mark.parametrize("attributes", [
    {str(index): {"name": "a"} for index in range(101)},
    {str(index): {"name": "a"} for index in range(1001)},
    {"n": {"names": [str(index) for index in range(126)]}},
    {"n": {"name": "a", "restrictions": [{"schema_id": "s"}] * 101}},
])  # fmt: skip
def test_a_request_is_bounded(attributes):
    assert code_of_refusal(attributes) == "request_too_large"


def test_a_hundred_equalities_with_companions_are_a_hundred_items():
    items = [predicate(f"a{index}", "==", 1, VALUE) for index in range(100)]
    assert len(read_items(ask(*items))) == 100


def test_a_request_is_pruned_to_what_is_answered():
    asked = ask(
        attribute("name", VALUE),
        attribute("age"),
        predicate("age", ">", 1, policyName="p"),
    )
    kept = ProofRequest.parse(asked).prune(["name", "p"])["requested_attributes"]
    assert kept == {"name": asked["requested_attributes"]["name"]}
    later = asked | {"non_revoked": {"to": 5}}
    bare = ProofRequest.parse(later).prune(["p", "name"], keep_conditions=False)
    assert "non_revoked" not in bare and bare["nonce"] == asked["nonce"]
    assert bare["requested_attributes"] == {"name": {"name": "name"}}
    assert list(bare["requested_predicates"]) == ["p"]


OF_PHONES = (
    {"vct": "urn:example:degree"},
    {"schemaId": "s", "provenBy": ["age_over_18"]},
    {"vct": "urn:example:degree"} | VALUE,
)


def test_what_only_an_sd_jwt_vc_can_meet_changes_no_byte_of_a_request():
    ours = {"credentialDefinitionId": "d"}
    value = ours | VALUE
    for one in OF_PHONES:
        is_of_predicate = "provenBy" in one
        shown = attribute("name", *([value] if is_of_predicate else [one, value, one]))
        wanted = ask(shown, predicate("age", ">=", 18, one, ours), nonce="1")
        plain = ask(
            attribute("name", value), predicate("age", ">=", 18, ours), nonce="1"
        )
        assert json.dumps(wanted) == json.dumps(plain)


@pytest.mark.parametrize("one", OF_PHONES)
def test_an_item_that_only_an_sd_jwt_vc_can_answer_is_not_asked_for(one):
    item = predicate("age", ">=", 18, one, one)
    refused = refusal(Conflict, ask, attribute("name"), item)
    assert refused.code == "not_provable" and list(refused.errors) == ["age"]
