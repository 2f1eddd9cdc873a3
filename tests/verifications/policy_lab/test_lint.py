"""Each finding about a policy: one that has it, and the nearest one that does not."""

import re
from datetime import UTC, date, datetime

import pytest

from tests.fixtures import FIRST_LIST, ledger, stored
from tests.support import presentations
from tests.support.presentations import attribute, policy_of, required
from verifications.policy_lab import lint, trial
from verifications.proofs import proof_policy

NOW = FIRST_LIST
DEGREE, BADGE = stored("degree"), stored("badge")
DEGREES = {"credentialDefinitionId": DEGREE.definition_id}
DEGREE_SCHEMA = {"schemaId": DEGREE.schema_id}
BADGES = {"credentialDefinitionId": BADGE.definition_id}
INTEGERS = {DEGREE.definition_id: {"age", "degree"}, BADGE.definition_id: {"level"}}
ALONE = ("non_revocation_alone", "revocationRequirement")
NOT_REQUIRED = ("no_revocation_requirement", "revocationRequirement")
QUOTED = re.compile("“.+?”")
CODE = re.compile(r"[\[\]`_<>=]|[a-z][A-Z]|autoSelect")
PERSON = {"name": "Alice", "degree": "Maths", "age": "28"}


def predicate(name, kind, *restrictions, **more):
    compared = {"policyName": f"{name}?"} | more
    return presentations.predicate(name, kind, 5, *restrictions, **compared)


def findings_of(*items, samples=(), integers=INTEGERS, **more):
    """[(code, path)] for a policy of these items. integers: declared attributes.

    The sentences have no names of the API.
    """
    body, known = proof_policy.normalise(policy_of(*items, **more)), ledger()
    tried = trial.try_policy(body, samples, known, NOW, integers)
    findings = lint.lint_policy(body, tried, known, NOW)
    for one in findings:
        words = QUOTED.sub("", one.message).partition("not have: ")[0]
        assert not CODE.search(words), one.message
        assert "[" in one.path or one.path.startswith("revocationRequirement")
    return [(one.code, one.path) for one in findings]


def degree(**values):
    return {"definitionId": DEGREE.definition_id, "values": PERSON | values}


def requiring(**requirement):
    return {"revocationRequirement": requirement}


def test_a_good_policy_has_no_finding():
    items = attribute("name", DEGREES), predicate("age", ">=", DEGREES)
    assert findings_of(*items, samples=[degree()]) == []


def test_an_attribute_item_that_can_be_read_in_two_ways():
    for name in ("Full name", "degree"):
        item = attribute("name", DEGREES, attributeNames=[name])
        found = findings_of(item, samples=[degree()])
        assert found == [("two_readings", "attributes[0]")]
    usual = attribute("Full name", DEGREES, attributeNames=["name"])
    spelled = attribute("Name", DEGREES, attributeNames=["name"])
    assert findings_of(usual) == findings_of(spelled) == []


def test_lint_finds_an_item_without_restrictions():
    assert findings_of(attribute("name"), predicate("level", "<")) == [
        ("no_restriction", "attributes[0]"),
        ("no_restriction", "predicates[0]"),
    ]


@pytest.mark.parametrize(("restriction", "codes"), [
    ({"schemaId": DEGREE.schema_id}, ["no_issuer"]),
    ({"schemaName": "Degree"}, ["no_issuer"]),
    (required("name", "A"), ["no_issuer"]),
    ({"schemaName": "Degree", "issuerDid": "anybody"}, []),
])  # fmt: skip
def test_a_restriction_without_an_issuer(restriction, codes):
    place = "attributes[0].restrictions[1]"
    items = [attribute("name", {"issuerDid": "Faber"}, restriction)]
    assert findings_of(*items) == [(code, place) for code in codes]


def test_a_definition_or_a_schema_that_is_nowhere():
    nowhere = {"credentialDefinitionId": "none"}
    schema = {"schemaId": "none", "issuerDid": "Faber"}
    assert findings_of(predicate("age", "<", DEGREES, nowhere, schema)) == [
        ("unknown_definition", "predicates[0].restrictions[1].credentialDefinitionId"),
        ("unknown_schema", "predicates[0].restrictions[2].schemaId"),
    ]


@pytest.mark.parametrize(("restriction", "is_wrong"), [
    (DEGREES | {"issuerDid": "Acme"}, True),
    (DEGREES | {"schemaVersion": "2.0"}, True),
    (DEGREES | {"schemaId": BADGE.schema_id}, True),
    (DEGREES | {"schemaId": DEGREE.schema_id, "schemaName": "Degree"}, False),
    ({"issuerDid": "Faber", "schemaName": "Badge"} | DEGREE_SCHEMA, True),
])  # fmt: skip
def test_a_restriction_that_contradicts_itself(restriction, is_wrong):
    place = ("restriction_never_met", "attributes[0].restrictions[0]")
    expected = [place] if is_wrong else []
    assert findings_of(attribute("name", restriction)) == expected


BOTH = attribute("two", DEGREES, attributeNames=["name", "level"])
LEVEL = predicate("level", "<", {"issuerDid": "x"}, DEGREES)
OTHER = required("b", "c")


@pytest.mark.parametrize(("item", "place"), [
    (attribute("salutation", DEGREES), "attributes[0].restrictions[0]"),
    (BOTH, "attributes[0].restrictions[0]"),
    (LEVEL, "predicates[0].restrictions[1]"),
    (attribute("name", DEGREES | OTHER), "attributes[0].restrictions[0]"),
    (attribute("N a m e", DEGREES), None),
])  # fmt: skip
def test_an_attribute_that_the_allowed_credentials_do_not_have(item, place):
    assert findings_of(item) == ([("attribute_not_in_schema", place)] if place else [])


def test_lint_finds_a_predicate_on_text():
    item, place = predicate("degree", ">", DEGREES), "predicates[0]"
    assert findings_of(item, samples=[degree()]) == [("predicate_on_text", place)]
    assert findings_of(item, samples=[degree(degree="7")]) == []
    others = {"schemaName": "Other", "values": {"degree": "Maths"}}
    assert findings_of(item, samples=[others]) == []


def test_an_attribute_that_is_compared_and_shown():
    shown = attribute("d", DEGREES, attributeNames=["name", "DEGREE"])
    found = findings_of(shown, predicate("degree", ">", DEGREES))
    assert found == [("compared_and_revealed", "predicates[0]")]
    other = predicate("degree", ">", DEGREES | {"schemaVersion": "1.0"})
    assert findings_of(shown, other) == []


@pytest.mark.parametrize(("name", "value", "is_found"), [
    ("degree", "Maths", False), ("degree", "7", True), ("degree", "2147483648", False),
    ("age", "old", True), ("name", "Age", False),
])  # fmt: skip
def test_a_number_that_is_shown(name, value, is_found):
    findings = findings_of(attribute(name, DEGREES), samples=[degree(**{name: value})])
    assert findings == ([("revealed_number", "attributes[0]")] if is_found else [])


@pytest.mark.parametrize(("name", "is_found"), [
    ("dateOfBirth", True), ("Birth Date", True), ("minimumAge", True), ("AGE", True),
    ("dob", True), ("net income", True), ("language", False), ("Image", False),
    ("packages", False), ("doberman", False),
])  # fmt: skip
def test_a_name_that_speaks_of_age_or_money(name, is_found):
    findings = findings_of(attribute(name, {"issuerDid": "Faber"}))
    assert findings == ([("revealed_number", "attributes[0]")] if is_found else [])


def test_a_number_that_a_restriction_requires_is_shown_anyway():
    item = attribute("age", DEGREES | required("AGE", "28"))
    assert findings_of(item, samples=[degree()]) == []


@pytest.mark.parametrize(("kind", "value", "is_found"), [
    # NOW is on the first of these days.
    (">=", 20231114, True), (">", 20231115, True), (">=", 20221113, True),
    (">=", 20221112, False), (">=", 20241114, True), (">=", 20241115, False),
    (">=", 20231131, False), (">=", 18, False), (">=", 19000101, False),
    (">=", "today", False), (">=", "today+30d", False),
    ("<=", 20051114, True), ("<", 20051014, True), ("<=", 20051013, False),
    ("<=", 20051115, False), ("<=", 20231114, True), ("<=", 20231115, False),
    ("<=", 19660101, False), ("<=", "today-18y", False), ("<=", 18, False),
])  # fmt: skip
def test_a_date_that_goes_stale(kind, value, is_found):
    item = predicate("age", kind, DEGREES, predicateValue=value)
    place = ("fixed_date", "predicates[0].predicateValue")
    assert findings_of(item) == ([place] if is_found else [])


@pytest.mark.parametrize(("kind", "day", "today", "words"), [
    (">=", date(2026, 12, 31), date(2026, 11, 23), "today"),
    ("<=", date(2026, 11, 23), date(2026, 11, 23), "today"),
    ("<=", date(2025, 11, 23), date(2026, 11, 23), "1 year ago"),
    ("<=", date(2008, 11, 1), date(2026, 11, 23), "18 years ago"),
    ("<=", date(2008, 12, 23), date(2027, 1, 10), "18 years ago"),
    ("<=", date(2008, 2, 29), date(2026, 3, 1), "18 years ago"),
    ("<=", date(2030, 11, 23), date(2026, 11, 23), ""),
    ("==", date(2026, 11, 23), date(2026, 11, 23), ""),
])  # fmt: skip
def test_what_is_probably_meant_by_a_fixed_day(kind, day, today, words):
    assert lint.meant_day(kind, day, today) == words


def test_revocation_that_is_not_asked_for():
    place, item = NOT_REQUIRED, attribute("Full Name", BADGES)
    assert findings_of(item) == [place]
    assert findings_of(item, **requiring(validNow=False)) == [place]
    assert findings_of(item, **requiring(validNow=True)) == [ALONE]
    assert findings_of(attribute("name", DEGREES)) == []


def test_revocation_that_is_not_asked_of_what_a_sample_is():
    values = {"Full Name": "A", "level": "x"}
    sample = {"definitionId": BADGE.definition_id, "values": values}
    issuers = {BADGE.public["issuerId"]: [NOT_REQUIRED], "Acme": []}
    for did, found in issuers.items():
        item = attribute("Full Name", {"issuerDid": did})
        assert findings_of(item, samples=[sample]) == found


def test_lint_finds_a_requirement_without_effect():
    now = requiring(validNow=True)
    found = findings_of(attribute("name", DEGREES), **now)
    assert found == [("requirement_without_effect", "attributes[0]")]
    assert findings_of(attribute("name", DEGREES, {"issuerDid": "Acme"}), **now) == []
    both = attribute("Full Name", BADGES), predicate("level", ">", BADGES)
    assert findings_of(*both, **now) == [ALONE]


@pytest.mark.parametrize("name", ["validUntil", "Valid to", "expiryDate"])
def test_a_date_stands_beside_the_requirement(name):
    badge, now = attribute("Full Name", BADGES), requiring(validNow=True)
    dated = predicate(name, ">=", {"issuerDid": "Faber"}, allowText=True)
    assert findings_of(badge, dated, **now) == [("text_satisfies", "predicates[0]")]
    assert ALONE in findings_of(badge, dated | {"predicateType": "<="}, **now)
    assert ALONE not in findings_of(attribute("name", DEGREES), **now)


@pytest.mark.parametrize(("more", "codes"), [
    ({}, ["integer_not_declared"]),
    ({"allowText": True}, ["text_satisfies"]),
    ({"predicateValue": -1}, ["integer_not_declared"]),
    ({"predicateValue": -2}, ["text_satisfies"]),
    ({"predicateType": "<"}, []),
    ({"predicateType": "=="}, ["equality_predicate"]),
])  # fmt: skip
def test_a_comparison_of_what_nobody_declared_a_number(more, codes):
    item = predicate("age", ">", DEGREES) | more
    place = "predicates[0]"
    assert findings_of(item, integers={}) == [(code, place) for code in codes]
    assert findings_of(item) == [
        (code, place) for code in codes if code == "equality_predicate"
    ]
    both = item | {"restrictions": [DEGREES, {"issuerDid": "Acme"}]}
    assert findings_of(both) == [(code, place) for code in codes]


@pytest.mark.parametrize(("seconds", "code"), [
    (-86_401, "valid_at_past"), (-86_400, None), (0, None), (60, None),
    (61, "not_yet_due"),
])  # fmt: skip
def test_a_moment_far_in_the_past_or_to_come(seconds, code):
    moment = datetime.fromtimestamp(NOW + seconds, UTC).isoformat()
    findings = findings_of(attribute("Full Name", BADGES), **requiring(validAt=moment))
    expected = [(code, "revocationRequirement.validAt")] if code else []
    assert findings == [ALONE, *expected]


def test_a_policy_that_names_very_much_is_looked_up_in_bounds():
    names = [{"credentialDefinitionId": f"none {number}"} for number in range(100)]
    items = [attribute(f"a{number}", *names[number:]) for number in range(5)]
    more = [{"credentialDefinitionId": f"more {number}"} for number in range(100)]
    items += [attribute("b", *more)]
    calls, known = [], ledger()
    known.definition = lambda name: calls.append(name)
    body = proof_policy.normalise(policy_of(*items))
    tried = trial.try_policy(body, [], known, NOW)
    findings = lint.lint_policy(body, tried, known, NOW)
    assert len(calls) == lint.MAX_LOOKUPS
    assert len([one for one in findings if one.code == "unknown_definition"]) == 490
