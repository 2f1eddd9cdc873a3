import pytest

from agency.core.errors import Invalid, PeerError
from tests.fixtures import ALICE_LINK_SECRET, Ledger, candidate
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
    select,
)
from verifications.proofs import presentation_building, selection
from verifications.proofs.selection import Selection


def fitting(request, *held):
    return [
        (item.policy_name, ids) for item, ids in selection.find_fitting(request, held)
    ]


def refusal(request, held, *chosen):
    with pytest.raises(Invalid) as refused:
        select(request, held, *chosen)
    return refused.value.code, refused.value.errors


def degree_of(name):
    return {"value": {"attributeName": "degree", "attributeValue": name}}


def test_every_item_is_listed_with_the_credentials_that_fit():
    asked = ask(attribute("name"), attribute("level"), attribute("salary"))
    held = (
        candidate("degree", "d1"),
        candidate("badge", "b1"),
        candidate("degree", "d2"),
    )
    assert fitting(asked, *held) == [
        ("name", ["d1", "d2"]),
        ("level", ["b1"]),
        ("salary", []),
    ]


def test_a_group_needs_one_credential_with_all_of_its_names():
    asked = ask(
        attribute("who", attributeNames=["NAME", "De gree"]), attribute("level")
    )
    assert fitting(asked, candidate("degree")) == [("who", ["degree"]), ("level", [])]


@pytest.mark.parametrize(
    ("restriction", "fits"),
    [
        ({"credentialDefinitionId": DEGREE}, True),
        ({"credentialDefinitionId": BADGE}, False),
        ({"issuerDid": FABER, "schemaName": "Degree", "schemaVersion": "1.0"}, True),
        ({"issuerDid": FABER, "schemaName": "degree"}, False),
        ({"schemaIssuerDid": FABER, "schemaId": f"{FABER}:2:Degree:1.0"}, True),
        ({"schemaIssuerDid": "Acme"}, False),
        (degree_of("Maths"), True),
        (degree_of("maths"), False),
        ({"value": {"attributeName": "level", "attributeValue": "7"}}, False),
    ],
)
def test_a_credential_fits_if_it_meets_all_of_a_restriction(restriction, fits):
    asked = ask(attribute("name", restriction))
    assert fitting(asked, candidate("degree")) == [
        ("name", ["degree"] if fits else [])
    ]


def test_a_credential_fits_if_it_meets_one_of_the_restrictions():
    asked = ask(attribute("name", {"issuerDid": "Acme"}, degree_of("Maths")))
    assert fitting(asked, candidate("degree")) == [("name", ["degree"])]


@pytest.mark.parametrize(
    ("kind", "value", "fits"),
    [
        (">=", 28, True),
        (">", 28, False),
        ("<=", 28, True),
        ("<", 28, False),
        ("<", 29, True),
        ("==", 28, True),
        ("==", 27, False),
    ],
)
def test_a_credential_fits_if_the_predicate_holds(kind, value, fits):
    asked = ask(predicate("age", kind, value))
    assert fitting(asked, candidate("degree")) == [("age", ["degree"] if fits else [])]


@pytest.mark.parametrize(
    ("age", "kind", "value", "fits"),
    [
        ("2147483647", ">", -1, True),
        ("2147483647", ">=", -1, False),
        ("-2147483648", "<=", 0, False),
        ("-2147483648", "<", 0, True),
        ("2147483648", ">", 1, False),
        ("twenty", ">", 1, False),
    ],
)
def test_what_the_library_cannot_compute_in_32_bits_does_not_fit(
    age, kind, value, fits
):
    asked, held = ask(predicate("age", kind, value)), candidate("degree", age=age)
    assert fitting(asked, held) == [("age", ["degree"] if fits else [])]
    assert judge(asked, answer(asked, held)).is_valid is fits


def test_auto_select_takes_the_first_that_fits_and_leaves_out_the_rest():
    asked = ask(predicate("age", ">=", 18), attribute("name"), attribute("salary"))
    held = [
        candidate("degree", "young", age="9"),
        candidate("degree", "old", age="70"),
    ]
    assert selection.auto_select(asked, held) == [
        Selection("name", "young"),
        Selection("age", "old"),
    ]


def test_what_is_selected_is_proven():
    asked = ask(attribute("name"), attribute("level"), predicate("age", "==", 28))
    outcome = judge(asked, answer(asked, candidate("badge"), candidate("degree")))
    assert outcome.is_valid
    assert (
        outcome.proof["name"]["value"] == "Alice"
        and outcome.proof["level"]["value"] == "7"
    )


def test_one_credential_is_presented_once_where_possible():
    asked = ask(attribute("name"), attribute("degree"), predicate("age", ">", 18))
    assert len(answer(asked)["identifiers"]) == 1


def test_one_attribute_can_be_shown_and_compared():
    asked = ask(attribute("age"), predicate("age", ">", 18, policyName="adult"))
    presentation = answer(asked)
    assert (
        len(presentation["identifiers"]) == 2
        and judge(
            asked,
            presentation,
        ).is_valid
    )


def test_a_companion_shows_the_required_value_from_the_same_credential():
    asked = ask(predicate("age", ">", 18, degree_of("Law")), attribute("degree"))
    held = candidate("degree", "d1"), candidate("degree", "d2", degree="Law")
    outcome = judge(asked, answer(asked, *held))
    assert outcome.is_valid and set(outcome.proof) == {"age", "degree"}


def test_nothing_is_shown_for_an_alternative_that_is_not_needed():
    asked = ask(attribute("name", degree_of("Maths"), {"issuerDid": FABER}))
    presentation = answer(asked)
    assert list(presentation["requested_proof"]["revealed_attrs"]) == ["name"]
    assert judge(asked, presentation).is_valid


def test_what_cannot_be_answered_is_left_empty():
    asked = ask(attribute("name"), attribute("salary"))
    outcome = judge(asked, answer(asked))
    assert not outcome.is_valid and codes(outcome) == {"unanswered"}
    assert (
        outcome.proof["name"]["value"] == "Alice"
        and "value" not in outcome.proof["salary"]
    )


def test_nothing_at_all_is_an_empty_presentation():
    asked = ask(attribute("salary"))
    presentation = answer(asked)
    assert presentation["proof"] == {
        "proofs": [],
        "aggregated_proof": {"c_hash": "0", "c_list": []},
    }
    assert presentation["identifiers"] == [] and codes(judge(asked, presentation)) == {
        "unanswered"
    }


def test_the_holder_chooses_the_credential():
    asked = ask(attribute("name"))
    held = [candidate("degree", "d1"), candidate("degree", "d2", name="Alice Liddell")]
    outcome = judge(asked, select(asked, held, Selection("name", "d2")))
    assert outcome.is_valid and outcome.proof["name"]["value"] == "Alice Liddell"


def test_a_hidden_value_is_proven_but_not_sent():
    asked = ask(
        attribute("name", {"issuerDid": FABER}),
        attribute("who", attributeNames=["degree"]),
    )
    presentation = answer(asked, hidden=("name",))
    assert "Alice" not in str(presentation)
    outcome = judge(asked, presentation)
    assert outcome.is_valid and "value" not in outcome.proof["name"]
    assert (
        outcome.proof["name"]["revealed"] is False
        and outcome.proof["who"]["revealed"] is True
    )


def test_a_predicate_is_always_hidden():
    asked = ask(predicate("age", ">", 18, degree_of("Maths")))
    assert judge(asked, answer(asked, hidden=("age",))).is_valid


def test_a_predicate_that_does_not_hold_is_left_empty_even_if_chosen():
    asked = ask(attribute("name"), predicate("age", ">", 99))
    chosen = Selection("name", "degree"), Selection("age", "degree")
    outcome = judge(asked, select(asked, [candidate("degree")], *chosen))
    assert (
        codes(outcome) == {"unanswered"} and outcome.proof["age"]["value"] == "false"
    )


@pytest.mark.parametrize(
    ("chosen", "code", "path"),
    [
        (Selection("salary", "degree"), "unknown_policy", "[0].policyName"),
        (Selection("name", "other"), "unknown_credential", "[0].credentialId"),
        (Selection("name", "badge"), "attribute_missing", "[0].credentialId"),
        (Selection("degree", "degree"), "restriction_not_met", "[0].credentialId"),
        (Selection("name", "degree", hidden=True), "hidden_not_allowed", "[0].hidden"),
    ],
)
def test_a_wrong_selection_is_refused(chosen, code, path):
    asked = ask(
        attribute("name", degree_of("Maths")),
        attribute("degree", {"issuerDid": "Acme"}),
    )
    held = [candidate("degree"), candidate("badge")]
    found, errors = refusal(asked, held, chosen)
    assert found == code and list(errors) == [path]


def test_one_item_takes_one_credential():
    asked, chosen = ask(attribute("name")), Selection("name", "degree")
    code, errors = refusal(asked, [candidate("degree")], chosen, chosen)
    assert code == "selected_twice" and list(errors) == ["[1].policyName"]


def test_all_wrong_selections_are_told_at_once():
    asked = ask(attribute("name"))
    code, errors = refusal(
        asked, [], Selection("name", "gone"), Selection("salary", "gone")
    )
    assert code == "unknown_credential"
    assert list(errors) == ["[0].credentialId", "[1].policyName"]


def test_a_credential_that_the_ledger_no_longer_knows_is_refused():
    asked, held = ask(attribute("name")), [candidate("degree")]
    with pytest.raises(Invalid) as refused:
        presentation_building.create_presentation(
            asked, [Selection("name", "degree")], held, ALICE_LINK_SECRET, Ledger()
        )
    assert refused.value.code == "unknown_definition"


def test_a_request_that_cannot_be_read_is_the_peers_fault():
    with pytest.raises(PeerError):
        selection.find_fitting(ask(attribute("name")) | {"nonce": "none"}, [])
