"""Every forgery is made with the bare library or by hand, and stopped by one rule only."""

import json
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.fixtures import Ledger, candidate, issue, ledger, stored
from tests.verifications import prover
from tests.verifications.alice import FABER, answer, ask, attribute, codes, judge, predicate
from verifications import checks
from verifications import request as wire
from wallets import anoncreds

VALUES = {"name": "Alice", "degree": "Maths", "age": "28"}
MINOR = candidate("degree", age="15", degree="99")
INDEX = {"sub_proof_index": 0}


class Case(NamedTuple):
    """request: what Acme stored; known: what Acme can resolve."""

    request: dict
    presentation: dict
    known: Ledger
    nonce_used: bool = False


class Forgery(NamedTuple):
    """rule: the one that alone stops it; None where the library would not accept it either."""

    make: Callable[[], Case]
    code: str
    rule: str | None


FORGERIES: dict[str, Forgery] = {}


def forgery(code: str, rule: str | None) -> Callable:
    def keep(make: Callable[[], Case]) -> Callable[[], Case]:
        FORGERIES[make.__name__] = Forgery(make, code, rule)
        return make

    return keep


def forge(asked: dict, *items: dict, held=None) -> Case:
    """An answer to other items, with the nonce of what was asked."""
    other = ask(*items, nonce=asked["nonce"])
    return Case(asked, answer(other, *(held or [candidate("degree")])), ledger())


def requested(case: Case) -> dict:
    return case.presentation["requested_proof"]


def equality(case: Case) -> dict:
    return case.presentation["proof"]["proofs"][0]["primary_proof"]["eq_proof"]


ADULT = predicate("age", ">=", 18)


@forgery("predicate_mismatch", "predicates")
def a_weaker_predicate():
    return forge(ask(ADULT), predicate("age", ">=", 1), held=[MINOR])


@forgery("predicate_mismatch", "predicates")
def a_predicate_on_another_attribute():
    return forge(ask(ADULT), predicate("degree", ">=", 18, policyName="age"), held=[MINOR])


@forgery("predicate_mismatch", "predicates")
def a_predicate_the_other_way_round():
    return forge(ask(ADULT), predicate("age", "<=", 18), held=[MINOR])


@forgery("predicate_mismatch", "predicates")
def a_missing_predicate():
    case = forge(ask(attribute("name"), ADULT), attribute("name"), held=[MINOR])
    requested(case)["predicates"]["age"] = INDEX
    return case


@forgery("predicate_mismatch", "predicates")
def a_predicate_relabelled_to_the_attribute_asked_for():
    case = a_predicate_on_another_attribute()
    proofs = case.presentation["proof"]["proofs"][0]["primary_proof"]["ge_proofs"]
    proofs[0]["predicate"]["attr_name"] = "age"
    return case


@forgery("predicate_mismatch", "predicates")
def a_predicate_that_was_not_asked_for():
    case = forge(ask(attribute("name")), attribute("name"), predicate("age", ">", 1))
    del requested(case)["predicates"]["age"]
    return case


@forgery("schema_mismatch", "schema")
def a_swapped_schema():
    case = forge(ask(attribute("name")), attribute("name"))
    case.presentation["identifiers"][0]["schema_id"] = f"{FABER}:2:Doctorate:1.0"
    doctorate = stored("degree").schema | {"name": "Doctorate"}
    case.known.schemas[f"{FABER}:2:Doctorate:1.0"] = doctorate
    return case


@forgery("revealed_mismatch", "revealed")
def a_shown_attribute_moved_to_the_hidden_ones():
    asked = ask(attribute("name"), attribute("degree"))
    case = forge(asked, attribute("name"), attribute("degree"))
    del requested(case)["revealed_attrs"]["degree"]
    requested(case)["unrevealed_attrs"]["degree"] = INDEX
    return case


@forgery("revealed_mismatch", "revealed")
def an_attribute_shown_that_was_not_asked_for():
    case = forge(ask(attribute("name")), attribute("name"), attribute("degree"))
    del requested(case)["revealed_attrs"]["degree"]
    return case


@forgery("self_attested", "self_attested")
def an_attribute_moved_to_the_self_attested_ones():
    case = forge(ask(attribute("name"), attribute("degree")), attribute("name"))
    requested(case)["self_attested_attrs"]["degree"] = "Doctor"
    return case


@forgery("attribute_not_in_schema", "attributes")
def an_attribute_that_the_credential_lacks_answered_as_hidden():
    case = forge(ask(attribute("name"), attribute("salary")), attribute("name"))
    requested(case)["unrevealed_attrs"]["salary"] = INDEX
    return case


@forgery("encoding", "encoding")
def another_text_beside_the_signed_number():
    case = forge(ask(attribute("name")), attribute("name"))
    requested(case)["revealed_attrs"]["name"]["raw"] = "Mallory"
    return case


@forgery("encoding", "encoding")
def another_text_in_a_group():
    group = attribute("who", attributeNames=["name", "degree"])
    case = forge(ask(group), group)
    requested(case)["revealed_attr_groups"]["who"]["values"]["name"]["raw"] = "Mallory"
    return case


@forgery("revealed_mismatch", None)
def another_text_with_its_own_number():
    case = forge(ask(attribute("name")), attribute("name"))
    forged = {"raw": "Mallory", "encoded": anoncreds.encode("Mallory")}
    requested(case)["revealed_attrs"]["name"] |= forged
    return case


@forgery("restriction", "restrictions")
def a_credential_of_another_issuer():
    return forge(ask(attribute("name", {"issuerDid": "Acme"})), attribute("name"))


@forgery("restriction", "restrictions")
def a_predicate_from_a_credential_of_another_schema():
    return forge(
        ask(predicate("age", ">", 18, {"schemaName": "Passport"})), predicate("age", ">", 18)
    )


def degree_of(name: str) -> dict:
    return {"issuerDid": FABER, "value": {"attributeName": "degree", "attributeValue": name}}


@forgery("value_restriction", "values")
def another_value_than_required():
    return forge(ask(attribute("degree", degree_of("Law"))), attribute("degree"))


@forgery("value_restriction", "values")
def another_value_in_the_companion():
    asked = ask(attribute("name", degree_of("Law")))
    return forge(asked, attribute("name", degree_of("Maths")))


@forgery("value_restriction", "values")
def no_companion_at_all():
    return forge(ask(attribute("name", degree_of("Law"))), attribute("name"))


@forgery("value_restriction", "values")
def the_required_value_hidden():
    asked = ask(attribute("degree", degree_of("Law")))
    other = ask(attribute("degree"), nonce=asked["nonce"])
    return Case(asked, answer(other, hidden=("degree",)), ledger())


@forgery("value_restriction", "values")
def the_required_value_from_another_credential():
    asked = ask(predicate("age", ">", 18, degree_of("Law")))
    held = candidate("degree", "first"), candidate("degree", "second", degree="Law", age="9")
    case = forge(
        asked,
        predicate("age", ">", 18),
        attribute("x", degree_of("Law"), attributeNames=["degree"]),
        held=held,
    )
    attributes = requested(case)["revealed_attrs"]
    attributes["age#value:degree"] = attributes.pop("x")
    return case


@forgery("answered_twice", "answered")
def one_item_answered_twice():
    case = forge(ask(attribute("name")), attribute("name"))
    requested(case)["unrevealed_attrs"]["name"] = INDEX
    return case


@forgery("split_answer", "answered")
def one_number_between_two_credentials():
    asked = ask(predicate("age", "==", 30))
    low, high = candidate("degree", "low", age="9"), candidate("degree", "high", age="70")
    bounds = predicate("age", ">=", 30, policyName="a"), predicate("age", "<=", 30, policyName="b")
    case = forge(asked, *bounds, held=[low, high])
    answers = requested(case)["predicates"]
    requested(case)["predicates"] = {"age#min": answers["a"], "age#max": answers["b"]}
    return case


@forgery("unanswered", None)
def less_than_was_asked_for():
    return forge(ask(attribute("name"), attribute("degree")), attribute("name"))


@forgery("unrequested", None)
def more_than_was_asked_for():
    return forge(ask(attribute("name")), attribute("name"), attribute("degree"))


@forgery("unrequested", "nothing_more")
def a_credential_that_was_not_asked_for():
    case = forge(ask(attribute("age")), attribute("age"), predicate("age", ">", 1, policyName="p"))
    requested(case)["predicates"] = {}
    return case


@forgery("identifiers_mismatch", None)
def more_names_than_proofs():
    case = forge(ask(attribute("name")), attribute("name"))
    case.presentation["identifiers"] *= 2
    return case


@forgery("identifiers_mismatch", None)
def an_answer_that_points_nowhere():
    case = forge(ask(attribute("name")), attribute("name"))
    requested(case)["revealed_attrs"]["name"]["sub_proof_index"] = 1
    return case


@forgery("unknown_definition", None)
def a_definition_that_nobody_published():
    return forge(ask(attribute("name")), attribute("name"))._replace(known=Ledger())


@forgery("nonce_reused", "nonce")
def an_answer_sent_before():
    return forge(ask(attribute("name")), attribute("name"))._replace(nonce_used=True)


@forgery("signature", None)
def an_answer_to_another_nonce():
    return Case(ask(attribute("name")), answer(ask(attribute("name"))), ledger())


@forgery("proof_out_of_range", "exponents")
def a_credential_made_from_the_public_key_alone():
    asked, degree = ask(attribute("name"), attribute("degree")), stored("degree")
    values = {"name": "Mallory", "degree": "Doctor", "age": "99"}
    signed = prover.signature_without_issuer(degree, values)
    return Case(asked, prover.prove(degree, asked, values, signed), ledger())


@forgery("challenge_incomplete", "challenge")
def a_proof_that_leaves_its_commitment_out_of_the_challenge():
    asked, degree = ask(attribute("name")), stored("degree")
    signed = prover.signature_of(issue(degree, VALUES))
    return Case(asked, prover.prove(degree, asked, VALUES, signed, bind=False), ledger())


@forgery("malformed", None)
def something_that_is_no_presentation():
    return Case(ask(attribute("name")), {"proof": "trust me"}, ledger())


def outcome_of(case: Case) -> checks.Outcome:
    return checks.check(case.request, case.presentation, case.known, case.nonce_used)


STOPPED_BY_A_RULE = {name: one for name, one in FORGERIES.items() if one.rule}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_a_forgery_is_refused_for_its_own_reason_only(forgery):
    outcome = outcome_of(forgery.make())
    assert not outcome.is_valid and codes(outcome) == {forgery.code}


@pytest.mark.parametrize("forgery", STOPPED_BY_A_RULE.values(), ids=STOPPED_BY_A_RULE)
def test_the_library_alone_accepts_it(forgery):
    request, presentation, known, _ = forgery.make()
    sent = presentation["requested_proof"]
    referents = [name for one in sent.values() for name in one]
    asked = wire.pruned(request, referents, keep_restrictions=False)
    assert anoncreds.verify_presentation(presentation, asked, known.schemas, known.definitions)


@pytest.mark.parametrize("forgery", STOPPED_BY_A_RULE.values(), ids=STOPPED_BY_A_RULE)
def test_without_its_rule_it_gets_through(forgery, monkeypatch):
    for rules in ("GENERAL_RULES", "ITEM_RULES"):
        kept = [rule for rule in getattr(checks, rules) if rule.__name__ != forgery.rule]
        monkeypatch.setattr(checks, rules, kept)
    assert outcome_of(forgery.make()).is_valid


def test_every_rule_stops_a_forgery():
    stopping = {one.rule for one in FORGERIES.values()}
    reasons = {one.code for one in FORGERIES.values()}
    rules = {rule.__name__ for rule in (*checks.GENERAL_RULES, *checks.ITEM_RULES)}
    assert rules - stopping == {"identifiers", "definition"}
    assert {"identifiers_mismatch", "unknown_definition", "signature"} <= reasons


def test_the_hand_written_prover_is_honest_with_an_honest_signature():
    asked, degree = ask(attribute("name")), stored("degree")
    signed = prover.signature_of(issue(degree, VALUES))
    assert judge(asked, prover.prove(degree, asked, VALUES, signed)).is_valid


def test_an_answer_does_not_change_by_being_read():
    case = forge(ask(attribute("name")), attribute("name"))
    before = json.dumps(case.presentation)
    assert outcome_of(case).is_valid and json.dumps(case.presentation) == before
