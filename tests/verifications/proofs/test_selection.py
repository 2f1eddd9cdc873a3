import pytest

from core.errors import Invalid
from tests.fixtures import candidate
from tests.support.errors import refusal
from tests.support.presentations import (
    BADGE,
    DEGREE,
    FABER,
    answer,
    ask,
    attribute,
    codes,
    judge,
    predicate,
    required,
    select,
)
from verifications.proofs import selection
from verifications.proofs.request_reading import ProofRequest
from verifications.proofs.selection import Selection


def fitting(request, *held):
    return [
        (item.policy_name, ids)
        for item, ids in selection.find_fitting(ProofRequest.parse(request).items, held)
    ]


def degree_of(name):
    return required("degree", name)


def test_every_item_is_listed_with_the_credentials_that_fit():
    asked = ask(attribute("name"), attribute("level"), attribute("salary"))
    ids = {"d1": "degree", "b1": "badge", "d2": "degree"}
    held = [candidate(name, held_id) for held_id, name in ids.items()]
    found = [("name", ["d1", "d2"]), ("level", ["b1"]), ("salary", [])]
    assert fitting(asked, *held) == found


def test_a_group_needs_one_credential_with_all_of_its_names():
    group = attribute("who", attributeNames=["NAME", "De gree"])
    asked = ask(group, attribute("level"))
    assert fitting(asked, candidate("degree")) == [("who", ["degree"]), ("level", [])]


@pytest.mark.parametrize(("restriction", "fits"), [
    ({"credentialDefinitionId": DEGREE}, True),
    ({"credentialDefinitionId": BADGE}, False),
    ({"issuerDid": FABER, "schemaName": "Degree", "schemaVersion": "1.0"}, True),
    ({"issuerDid": FABER, "schemaName": "degree"}, False),
    ({"schemaIssuerDid": FABER, "schemaId": f"{FABER}:2:Degree:1.0"}, True),
    ({"schemaIssuerDid": "Acme"}, False), (degree_of("Maths"), True),
    (degree_of("maths"), False), (required("level", "7"), False),
])  # fmt: skip
def test_a_credential_fits_if_it_meets_all_of_a_restriction(restriction, fits):
    found = fitting(ask(attribute("name", restriction)), candidate("degree"))
    assert found == [("name", ["degree"] if fits else [])]


def test_a_credential_fits_if_it_meets_one_of_the_restrictions_or_the_predicate():
    asked = ask(attribute("name", {"issuerDid": "Acme"}, degree_of("Maths")))
    assert fitting(asked, candidate("degree")) == [("name", ["degree"])]
    holding = ((">=", 28), ("<=", 28), ("<", 29), ("==", 28))
    for kind, value in (*holding, (">", 28), ("<", 28), ("==", 27)):
        ids = ["degree"] if (kind, value) in holding else []
        asked = ask(predicate("age", kind, value))
        assert fitting(asked, candidate("degree")) == [("age", ids)]


@pytest.mark.parametrize(("age", "kind", "value", "fits"), [
    ("2147483647", ">", -1, True), ("2147483647", ">=", -1, False),
    ("-2147483648", "<=", 0, False), ("-2147483648", "<", 0, True),
    ("2147483648", ">", 1, False), ("twenty", ">", 1, False),
    # What has a bound, which every number that meets the comparison meets too:
    ("0", ">=", 0, True), ("1", ">", 0, True), ("2147483647", ">=", 2147483647, True),
    ("2147483647", ">", 2147483646, True), ("2147483647", ">=", 0, True),
    ("-1", ">=", 18, False), ("-2147483648", ">=", 18, False),
])  # fmt: skip
def test_what_is_not_computed_in_32_bits_does_not_fit(age, kind, value, fits):
    asked, held = ask(predicate("age", kind, value)), candidate("degree", age=age)
    assert fitting(asked, held) == [("age", ["degree"] if fits else [])]
    outcome = judge(asked, answer(asked, held))
    assert (outcome.is_valid, codes(outcome)) == (
        (True, set()) if fits else (False, {"unanswered"})
    )


def test_auto_select_takes_the_first_that_fits_and_leaves_out_the_rest():
    asked = ask(predicate("age", ">=", 18), attribute("name"), attribute("salary"))
    ages = {"young": "9", "old": "70"}
    held = [candidate("degree", name, age=age) for name, age in ages.items()]
    found = [Selection("name", "young"), Selection("age", "old")]
    assert selection.auto_select(ProofRequest.parse(asked).items, held) == found


def test_what_is_selected_is_proven():
    asked = ask(attribute("name"), attribute("level"), predicate("age", "==", 28))
    outcome = judge(asked, answer(asked, candidate("badge"), candidate("degree")))
    shown = [outcome.proof[name]["value"] for name in ("name", "level", "age")]
    assert outcome.is_valid and shown == ["Alice", "7", "true"]


def test_one_credential_is_presented_once_unless_one_attribute_is_also_compared():
    asked = ask(attribute("name"), attribute("degree"), predicate("age", ">", 18))
    assert len(answer(asked)["identifiers"]) == 1
    asked = ask(attribute("age"), predicate("age", ">", 18, policyName="adult"))
    presentation = answer(asked)
    assert len(presentation["identifiers"]) == 2
    assert judge(asked, presentation).is_valid


def test_a_companion_shows_the_required_value_but_for_no_needless_alternative():
    asked = ask(predicate("age", ">", 18, degree_of("Law")), attribute("degree"))
    held = candidate("degree", "d1"), candidate("degree", "d2", degree="Law")
    outcome = judge(asked, answer(asked, *held))
    assert outcome.is_valid and set(outcome.proof) == {"age", "degree"}
    asked = ask(attribute("name", degree_of("Maths"), {"issuerDid": FABER}))
    presentation = answer(asked)
    assert list(presentation["requested_proof"]["revealed_attrs"]) == ["name"]
    assert judge(asked, presentation).is_valid


def test_what_cannot_be_answered_is_left_empty():
    asked = ask(attribute("name"), attribute("salary"))
    outcome = judge(asked, answer(asked))
    assert not outcome.is_valid and codes(outcome) == {"unanswered"}
    shown = {name: proven.get("value") for name, proven in outcome.proof.items()}
    assert shown == {"name": "Alice", "salary": None}
    presentation = answer(asked := ask(attribute("salary")))
    empty = {"c_hash": "0", "c_list": []}
    assert presentation["proof"] == {"proofs": [], "aggregated_proof": empty}
    assert presentation["identifiers"] == []
    assert codes(judge(asked, presentation)) == {"unanswered"}


def test_the_holder_chooses_the_credential():
    asked = ask(attribute("name"))
    held = [candidate("degree", "d1"), candidate("degree", "d2", name="Alice Liddell")]
    outcome = judge(asked, select(asked, held, Selection("name", "d2")))
    assert outcome.is_valid and outcome.proof["name"]["value"] == "Alice Liddell"


def test_a_hidden_value_is_proven_but_not_sent_and_a_predicate_always_hidden():
    who = attribute("who", attributeNames=["degree"])
    asked = ask(attribute("name", {"issuerDid": FABER}), who)
    presentation = answer(asked, hidden=("name",))
    assert "Alice" not in str(presentation)
    outcome = judge(asked, presentation)
    assert outcome.is_valid and "value" not in outcome.proof["name"]
    assert outcome.proof["name"]["revealed"] is False
    assert outcome.proof["who"]["revealed"] is True
    asked = ask(predicate("age", ">", 18, degree_of("Maths")))
    assert judge(asked, answer(asked, hidden=("age",))).is_valid


def test_a_predicate_that_does_not_hold_is_left_empty_even_if_chosen():
    asked = ask(attribute("name"), predicate("age", ">", 99))
    chosen = Selection("name", "degree"), Selection("age", "degree")
    outcome = judge(asked, select(asked, [candidate("degree")], *chosen))
    assert codes(outcome) == {"unanswered"}
    assert outcome.proof["age"]["value"] == "false"


@pytest.mark.parametrize(("chosen", "code", "path"), [
    (Selection("salary", "degree"), "unknown_policy", "[0].policyName"),
    (Selection("name", "other"), "unknown_credential", "[0].credentialId"),
    (Selection("name", "badge"), "attribute_missing", "[0].credentialId"),
    (Selection("degree", "degree"), "restriction_not_met", "[0].credentialId"),
    (Selection("name", "degree", hidden=True), "hidden_not_allowed", "[0].hidden"),
])  # fmt: skip
def test_a_wrong_selection_is_refused(chosen, code, path):
    other = attribute("degree", {"issuerDid": "Acme"})
    asked = ask(attribute("name", degree_of("Maths")), other)
    held = [candidate("degree"), candidate("badge")]
    refused = refusal(Invalid, select, asked, held, chosen)
    assert refused.code == code and list(refused.errors) == [path]


def test_one_item_takes_one_credential_and_all_wrong_selections_are_told_at_once():
    def refused(held, *chosen):
        error = refusal(Invalid, select, ask(attribute("name")), held, *chosen)
        return error.code, list(error.errors)

    twice = [Selection("name", "degree")] * 2
    told = refused([candidate("degree")], *twice)
    assert told == ("selected_twice", ["[1].policyName"])
    told = refused([], Selection("name", "gone"), Selection("salary", "gone"))
    assert told == ("unknown_credential", ["[0].credentialId", "[1].policyName"])
