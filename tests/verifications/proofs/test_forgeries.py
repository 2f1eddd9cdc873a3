"""Forgeries made with the library alone or by hand. Exactly one rule rejects each.

Each is tried alone and in company: with a group, a companion and a predicate beside
it.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import pytest

from tests.fixtures import (
    ALICE_LINK_SECRET,
    DAY,
    FIRST_LIST,
    Ledger,
    badge,
    candidate,
    issue,
    ledger,
    stored,
    stored_registry,
)
from tests.support import forging_prover, presentations
from tests.support.forging_prover import Part, Signature
from tests.support.presentations import (
    FABER,
    answer,
    attribute,
    codes,
    judge,
    predicate,
    required,
    select,
)
from verifications.proofs import checks, failures
from verifications.proofs.request_reading import ProofRequest
from verifications.proofs.selection import Selection
from wallets import anoncreds

VALUES = {"name": "Alice", "degree": "Maths", "age": "28"}
MINOR = candidate("degree", age="15", degree="99")
INDEX = {"sub_proof_index": 0}


def beside(name: str, number: str, text: str) -> list[dict]:
    """Items that the same credential answers honestly, in two sub-proofs."""
    shown = required(name, text)
    return [
        attribute("a group", attributeNames=[name, number]),
        predicate(number, ">=", 1, policyName="a predicate"),
        predicate(number, "<=", 99, shown, policyName="with a companion"),
    ]


COMPANY: list[bool] = []


def ask(*items: dict, **more: object) -> dict:
    """The request for these items, and for others if it is tried in company."""
    if not COMPANY:
        return presentations.ask(*items, **more)
    about = ("name", "age", "Alice")
    if any(item.get("policyName") == "level" for item in items):
        about = ("Full Name", "level", "Alice Liddell")
    return presentations.ask(*items, *beside(*about), **more)


class Case(NamedTuple):
    """request: what Acme stored; known: what Acme can resolve."""

    request: dict
    presentation: dict
    known: Ledger


class Forgery(NamedTuple):
    """rule: the only one that rejects it; None if the library would reject it."""

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


@cache
def _honest(items: str, in_company: bool) -> Case:
    listed = json.loads(items)
    return forge(ask(*listed), *listed)


def honest(*items: dict) -> Case:
    """What forgers begin with: a good answer, which takes long to make."""
    return copy.deepcopy(_honest(json.dumps(items), bool(COMPANY)))


def requested(case: Case) -> dict:
    return case.presentation["requested_proof"]


def showing(name: str, **said: str) -> Case:
    """An attribute is shown with another text or number beside the signed one."""
    case = honest(attribute(name))
    requested(case)["revealed_attrs"][name] |= said
    return case


def identify(case: Case, **said: object) -> None:
    """Says so of every sub-proof."""
    for one in case.presentation["identifiers"]:
        one |= said


def equality(case: Case) -> dict:
    return case.presentation["proof"]["proofs"][0]["primary_proof"]["eq_proof"]


NAME, DEGREE = attribute("name"), attribute("degree")
ADULT = predicate("age", ">=", 18)


@forgery("predicate_mismatch", "predicates")
def a_weaker_predicate():
    return forge(ask(ADULT), predicate("age", ">=", 1), held=[MINOR])


@forgery("predicate_mismatch", "predicates")
def a_predicate_on_another_attribute():
    other = predicate("degree", ">=", 18, policyName="age")
    return forge(ask(ADULT), other, held=[MINOR])


@forgery("predicate_mismatch", "predicates")
def a_predicate_the_other_way_round():
    other_way = predicate("age", ">=", 10, allowText=True)
    return forge(ask(predicate("age", "<=", 10)), other_way, held=[MINOR])


@forgery("predicate_mismatch", "predicates")
def a_missing_predicate():
    case = forge(ask(NAME, ADULT), NAME, held=[MINOR])
    requested(case)["predicates"] |= {"age": INDEX, "age#bound": INDEX}
    return case


@forgery("predicate_mismatch", "predicates")
def a_predicate_relabelled_to_the_attribute_asked_for():
    case = a_predicate_on_another_attribute()
    proofs = case.presentation["proof"]["proofs"][0]["primary_proof"]["ge_proofs"]
    proofs[0]["predicate"]["attr_name"] = "age"
    return case


@forgery("predicate_mismatch", "predicates")
def a_predicate_that_was_not_asked_for():
    case = forge(ask(NAME), NAME, predicate("age", ">", 1, allowText=True))
    del requested(case)["predicates"]["age"]
    return case


@forgery("schema_mismatch", "schema")
def a_swapped_schema():
    case = honest(NAME)
    case.presentation["identifiers"][0]["schema_id"] = f"{FABER}:2:Doctorate:1.0"
    doctorate = stored("degree").schema | {"name": "Doctorate"}
    case.known.schemas[f"{FABER}:2:Doctorate:1.0"] = doctorate
    return case


@forgery("revealed_mismatch", "revealed")
def a_shown_attribute_moved_to_the_hidden_ones():
    case = honest(NAME, DEGREE)
    del requested(case)["revealed_attrs"]["degree"]
    requested(case)["unrevealed_attrs"]["degree"] = INDEX
    return case


@forgery("revealed_mismatch", "revealed")
def an_attribute_shown_that_was_not_asked_for():
    case = forge(ask(NAME), NAME, DEGREE)
    del requested(case)["revealed_attrs"]["degree"]
    return case


@forgery("self_attested", "self_attested")
def an_attribute_moved_to_the_self_attested_ones():
    case = forge(ask(NAME, DEGREE), NAME)
    requested(case)["self_attested_attrs"]["degree"] = "Doctor"
    return case


@forgery("attribute_not_in_schema", "attributes")
def an_attribute_that_the_credential_lacks_answered_as_hidden():
    case = forge(ask(NAME, attribute("salary")), NAME)
    requested(case)["unrevealed_attrs"]["salary"] = INDEX
    return case


@forgery("encoding", "encoding")
def another_text_beside_the_signed_number():
    return showing("name", raw="Mallory")


@forgery("encoding", "encoding")
def another_writing_of_a_number():
    return showing("age", raw="2_8")


@forgery("encoding", "encoding")
def another_text_in_a_group():
    case = honest(attribute("who", attributeNames=["name", "degree"]))
    requested(case)["revealed_attr_groups"]["who"]["values"]["name"]["raw"] = "Mallory"
    return case


@forgery("revealed_mismatch", None)
def another_text_with_its_own_number():
    encoded = anoncreds.encode_value("Mallory")
    return showing("name", raw="Mallory", encoded=encoded)


@forgery("restriction", "restrictions")
def a_credential_of_another_issuer():
    return forge(ask(attribute("name", {"issuerDid": "Acme"})), NAME)


@forgery("restriction", "restrictions")
def a_predicate_from_a_credential_of_another_schema():
    asked = ask(predicate("age", ">", 18, {"schemaName": "Passport"}))
    return forge(asked, predicate("age", ">", 18))


def degree_of(name: str) -> dict:
    return {"issuerDid": FABER} | required("degree", name)


@forgery("value_restriction", "values")
def another_value_than_required():
    return forge(ask(attribute("degree", degree_of("Law"))), DEGREE)


@forgery("value_restriction", "values")
def another_value_in_the_companion():
    asked = ask(attribute("name", degree_of("Law")))
    return forge(asked, attribute("name", degree_of("Maths")))


@forgery("value_restriction", "values")
def no_companion_at_all():
    return forge(ask(attribute("name", degree_of("Law"))), NAME)


@forgery("value_restriction", "values")
def the_required_value_hidden():
    asked = ask(attribute("degree", degree_of("Law")))
    other = ask(DEGREE, nonce=asked["nonce"])
    return Case(asked, answer(other, hidden=("degree",)), ledger())


@forgery("value_restriction", "values")
def the_required_value_from_another_credential():
    asked = ask(predicate("age", ">", 18, degree_of("Law")))
    lawyer = candidate("degree", "second", degree="Law", age="9")
    shown = attribute("x", degree_of("Law"), attributeNames=["degree"])
    held = [candidate("degree", "first"), lawyer]
    case = forge(asked, predicate("age", ">", 18), shown, held=held)
    attributes = requested(case)["revealed_attrs"]
    attributes["age#value:degree"] = attributes.pop("x")
    return case


@forgery("answered_twice", "answered")
def one_item_answered_twice():
    case = honest(NAME)
    requested(case)["unrevealed_attrs"]["name"] = INDEX
    return case


@forgery("split_answer", "answered")
def one_number_between_two_credentials():
    asked = ask(predicate("age", "==", 30))
    ages = {"low": "9", "high": "70"}
    held = [candidate("degree", name, age=age) for name, age in ages.items()]
    above = predicate("age", ">=", 30, policyName="a", allowText=True)
    below = predicate("age", "<=", 30, policyName="b")
    case = forge(asked, above, below, held=held)
    answers = requested(case)["predicates"]
    answers |= {"age#min": answers.pop("a"), "age#max": answers.pop("b")}
    return case


@forgery("unanswered", None)
def less_than_was_asked_for():
    return forge(ask(NAME, DEGREE), NAME)


@forgery("unrequested", None)
def more_than_was_asked_for():
    return forge(ask(NAME), NAME, DEGREE)


@forgery("unrequested", "nothing_more")
def a_credential_that_was_not_asked_for():
    held = [candidate("degree"), candidate("badge")]
    case = forge(ask(NAME), NAME, attribute("Full Name"), held=held)
    del requested(case)["revealed_attrs"]["Full Name"]
    return case


@forgery("identifiers_mismatch", None)
def more_names_than_proofs():
    case = honest(NAME)
    case.presentation["identifiers"] *= 2
    return case


@forgery("identifiers_mismatch", None)
def an_answer_that_points_nowhere():
    case = honest(NAME)
    requested(case)["revealed_attrs"]["name"]["sub_proof_index"] = 9
    return case


@forgery("unknown_definition", None)
def a_definition_that_nobody_published():
    return honest(NAME)._replace(known=Ledger())


@forgery("signature", None)
def an_answer_to_another_nonce():
    return Case(ask(NAME), answer(ask(NAME)), ledger())


def signature_of(
    values: dict[str, str], link_secret: str = ALICE_LINK_SECRET
) -> Signature:
    return forging_prover.signature_of(issue(stored("degree"), values, link_secret))


def degree_part(values: dict[str, str], referents: object, **more: object) -> Part:
    """A sub-proof of a degree with these values, which Faber has issued."""
    return Part(stored("degree"), values, signature_of(values), referents, **more)


def assemble(asked: dict, *parts: Part) -> Case:
    return Case(asked, forging_prover.prove(asked, *parts), ledger())


def prove(
    asked: dict,
    values: dict[str, str],
    signed: Signature | None = None,
    lies: dict[str, int] | None = None,
    bind: bool = True,
) -> dict:
    """Build an answer from one degree by hand.

    One sub-proof has the revealed attributes and the lies, a second one the other
    predicates with their companions.
    """
    degree, lies = stored("degree"), lies or {}
    signed = signed or signature_of(values)
    predicates = asked["requested_predicates"]
    compared = {one for one in predicates if one.split("#")[0] not in lies}
    compared |= {
        one for one in asked["requested_attributes"] if one.split("#")[0] in compared
    }
    rest = [*asked["requested_attributes"], *asked["requested_predicates"]]
    rest = [one for one in rest if one not in compared]
    parts = [
        Part(degree, values, signed, rest, lies),
        Part(degree, values, signed, compared),
    ]
    return forging_prover.prove(
        asked, *(part for part in parts if part.referents), bind=bind
    )


@forgery("proof_out_of_range", "exponents")
def a_credential_made_from_the_public_key_alone():
    asked, values = ask(NAME, DEGREE), VALUES | {"degree": "Doctor", "age": "99"}
    signed = forging_prover.signature_without_issuer(stored("degree"), values)
    return Case(asked, prove(asked, values, signed), ledger())


@forgery("challenge_incomplete", "challenge")
def a_proof_that_leaves_its_commitment_out_of_the_challenge():
    asked = ask(NAME)
    return Case(asked, prove(asked, VALUES, bind=False), ledger())


CHILD = VALUES | {"age": "15"}
OF_AGE = predicate("age", ">=", 18, policyName="adult")
ADULTS = ["adult", "adult#bound"]
TEXT = predicate("degree", ">=", 18, policyName="text")


def lie(asked: dict, **lies: int) -> Case:
    """The child proves these numbers in place of its own."""
    return Case(asked, prove(asked, CHILD, lies=lies), ledger())


@forgery("malformed", "responses")
def a_number_that_is_shown_and_proven_to_be_another():
    return lie(ask(attribute("age"), OF_AGE), adult=40)


@forgery("malformed", "responses")
def a_number_that_is_shown_for_a_restriction_and_proven_to_be_another():
    shown = {"issuerDid": FABER} | required("age", "15")
    return lie(ask(attribute("name", shown), OF_AGE), adult=40)


@forgery("malformed", "responses")
def a_number_that_is_shown_in_a_group_and_proven_to_be_another():
    group = attribute("who", attributeNames=["name", "age"])
    return lie(ask(group, predicate("age", "<", 14, policyName="child")), child=9)


@forgery("malformed", "responses")
def a_number_that_is_shown_by_the_second_of_two_credentials():
    asked = presentations.ask(NAME, attribute("age"), OF_AGE)
    liar = degree_part(CHILD, ["age", *ADULTS], lies={"adult": 40})
    return assemble(asked, degree_part(VALUES, ["name"]), liar)


@forgery("malformed", "responses")
def a_response_for_an_attribute_that_there_is_not():
    case = honest(NAME)
    equality(case)["m"]["salary"] = "7"
    return case


@forgery("predicate_mismatch", "predicates")
def a_hidden_number_that_is_proven_to_be_another():
    return lie(presentations.ask(NAME, OF_AGE), adult=40)


@forgery("predicate_mismatch", "predicates")
def a_text_with_a_bound_that_is_not_proven():
    asked = presentations.ask(NAME, TEXT)
    case = assemble(asked, degree_part(VALUES, ["name", "text"]))
    requested(case)["predicates"]["text#bound"] = INDEX
    return case


@forgery("bound_unanswered", None)
def a_text_without_its_bound():
    case = a_text_with_a_bound_that_is_not_proven()
    del requested(case)["predicates"]["text#bound"]
    return case


@forgery("split_answer", "answered")
def a_text_with_the_bound_of_a_number():
    asked, number = presentations.ask(TEXT), VALUES | {"degree": "7"}
    text, bound = ([one] for one in asked["requested_predicates"])
    return assemble(asked, degree_part(VALUES, text), degree_part(number, bound))


@forgery("signature", None)
def a_predicate_from_the_credential_of_another_holder():
    other, values = "7" * 70, VALUES | {"name": "Bob"}
    signed = signature_of(values, other)
    theirs = Part(stored("degree"), values, signed, ADULTS, link_secret=other)
    mine = degree_part(CHILD, ["name"])
    return assemble(presentations.ask(NAME, OF_AGE), mine, theirs)


REVOKED = badge(2)
SECOND_LIST, NOW = FIRST_LIST + DAY, FIRST_LIST + DAY + 100
WIDE = {"non_revoked": {"from": 0, "to": NOW}}
MINE = f"V4SGRU86Z58d6TV7PBUe6f:4:{stored('badge').definition_id}:CL_ACCUM:mine"


def use(held, at: int, shown_at: int, known: Ledger | None = None) -> Case:
    """An answer with the list of another moment; the request names a wide interval."""
    known = known or ledger()
    asked = ask(attribute("level"), at=at) | {"non_revoked": {"from": 0, "to": at}}
    other = asked | {"non_revoked": {"from": 0, "to": shown_at}}
    names = [item.policy_name for item in ProofRequest.parse(other).items]
    chosen = [Selection(name, held.credential_id) for name in names]
    return Case(asked, select(other, [held], *chosen, known=known), known)


@cache
def _valid_now(in_company: bool) -> Case:
    return use(badge(3), NOW, NOW)


def valid_now(**said: object) -> Case:
    """A good answer, which takes long to make, with what is said of its list."""
    case = copy.deepcopy(_valid_now(bool(COMPANY)))
    case.presentation["identifiers"][0] |= said
    return case


@forgery("stale", "status_list")
def the_list_from_before_the_revocation():
    return use(REVOKED, NOW, FIRST_LIST)


@forgery("not_yet_valid", "status_list")
def a_list_from_after_the_moment_when_there_was_none():
    return use(badge(3), FIRST_LIST - 1, SECOND_LIST)


@forgery("unknown_timestamp", "status_list")
def a_list_from_after_the_moment():
    return use(badge(3), FIRST_LIST, SECOND_LIST)


@forgery("unknown_timestamp", None)
def a_list_that_was_never_published():
    return valid_now(timestamp=SECOND_LIST + 1)


@forgery("unknown_timestamp", None)
def a_list_of_times_to_come():
    return valid_now(timestamp=NOW + 10 * DAY)


@forgery("stale", None)
def another_time_beside_the_list():
    return valid_now(timestamp=FIRST_LIST)


@forgery("non_revocation_missing", "non_revocation")
def a_revoked_credential_without_its_registry():
    asked = ask(attribute("level"), at=NOW)
    sent = answer(ask(attribute("level"), nonce=asked["nonce"]), badge(2))
    case = Case(asked | WIDE, sent, ledger())
    identify(case, rev_reg_id=None, timestamp=None)
    return case


@forgery("non_revocation_missing", "non_revocation")
def a_registry_and_a_time_without_a_proof():
    case = a_revoked_credential_without_its_registry()
    registry_id = stored_registry("first").registry_id
    identify(case, rev_reg_id=registry_id, timestamp=SECOND_LIST)
    return case


@forgery("non_revocation_missing", "non_revocation")
def a_revocable_credential_that_never_had_a_place():
    asked = ask(attribute("level"), at=NOW)
    return Case(asked, answer(asked, candidate("badge")), ledger())


@forgery("non_revocation_missing", None)
def a_proof_of_non_revocation_without_its_registry():
    return valid_now(rev_reg_id=None, timestamp=None)


def registry_of_my_own(**said: str) -> Case:
    """Faber's registry once more, where nobody revokes anything."""
    known, one = ledger(), stored_registry("first")
    known.registries[MINE] = one.public
    mine = one.status_lists[0] | {"revRegDefId": MINE, "timestamp": SECOND_LIST}
    known.status_lists[MINE] = [mine]
    held = badge(2)
    place = held.revocation._replace(registry_id=MINE)
    credential = held.credential | {"rev_reg_id": MINE}
    held = replace(held, credential=credential, revocation=place)
    case = use(held, NOW, NOW, known)
    # No holder of ours proves with it.
    known.registries[MINE] = one.public | said
    return case


@forgery("registry_mismatch", "revocation_registry")
def a_registry_of_another_definition():
    return registry_of_my_own(credDefId=stored("degree").definition_id)


@forgery("registry_mismatch", "revocation_registry")
def a_registry_of_another_issuer():
    return registry_of_my_own(issuerId="V4SGRU86Z58d6TV7PBUe6f")


@forgery("registry_mismatch", None)
def a_registry_that_nobody_published():
    case = valid_now()
    case.known.registries.clear()
    return case


@forgery("revoked_or_invalid", None)
def a_swapped_registry_of_the_same_definition():
    second = stored_registry("second")
    timestamp = second.status_lists[0]["timestamp"]
    return valid_now(rev_reg_id=second.registry_id, timestamp=timestamp)


@forgery("revoked_or_invalid", None)
def a_revoked_credential_with_the_list_that_says_so():
    return use(REVOKED, NOW, NOW)


@forgery("revoked_or_invalid", None)
def the_witness_of_before_beside_the_list_of_now():
    case = use(REVOKED, NOW, FIRST_LIST)
    identify(case, timestamp=SECOND_LIST)
    return case


@forgery("revoked_or_invalid", None)
def the_non_revocation_proof_of_another_credential():
    case, other = use(REVOKED, NOW, NOW), valid_now()
    own, borrowed = (one.presentation["proof"]["proofs"][0] for one in (case, other))
    own["non_revoc_proof"] = borrowed["non_revoc_proof"]
    hashed = other.presentation["proof"]["aggregated_proof"]["c_list"][:7]
    case.presentation["proof"]["aggregated_proof"]["c_list"][:7] = hashed
    return case


@forgery("challenge_incomplete", "challenge")
def points_of_a_non_revocation_proof_that_the_challenge_does_not_name():
    case = valid_now()
    hashed = case.presentation["proof"]["aggregated_proof"]["c_list"]
    hashed[:2] = [hashed[0] + hashed[1]]
    return case


@forgery("malformed", None)
def something_that_is_no_presentation():
    return Case(ask(NAME), {"proof": "trust me"}, ledger())


def outcome_of(case: Case) -> checks.Outcome:
    request = ProofRequest.parse(case.request)
    return checks.judge_presentation(request, case.presentation, case.known)


STOPPED_BY_A_RULE = {name: one for name, one in FORGERIES.items() if one.rule}


@cache
def made(name: str, in_company: bool) -> Case:
    COMPANY[:] = [True] if in_company else []
    try:
        return FORGERIES[name].make()
    finally:
        COMPANY.clear()


@pytest.fixture(params=["alone", pytest.param("in company", marks=pytest.mark.slow)])
def case(request, name):
    return copy.deepcopy(made(name, request.param == "in company"))


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_refused_for_its_own_reason_only(name, case):
    outcome = outcome_of(case)
    assert not outcome.is_valid and codes(outcome) == {FORGERIES[name].code}


@pytest.mark.parametrize("name", STOPPED_BY_A_RULE)
def test_without_its_rule_it_gets_through(name, case, monkeypatch):
    """So the library alone accepts it."""
    for rules in ("PRESENTATION_RULES", "ITEM_RULES"):
        kept = dict(getattr(checks, rules))
        kept.pop(FORGERIES[name].rule, None)
        monkeypatch.setattr(checks, rules, kept)
    assert outcome_of(case).is_valid


OF_SD_JWT = {  # tests/verifications/openid4vp/test_sd_jwt_rules.py forges these
    "attribute_not_shown", "credential_malformed", "expired", "holder_binding",
    "not_proven", "not_valid_yet", "revoked", "status_unavailable",
    "untrusted_certificate",
}  # fmt: skip


def test_every_rule_stops_a_forgery():
    stopping = {one.rule for one in FORGERIES.values()}
    reasons = {one.code for one in FORGERIES.values()}
    rules = {*checks.PRESENTATION_RULES, *checks.ITEM_RULES}
    assert rules - stopping == {"identifiers", "definition"}
    others = failures.FAILURES.keys() - reasons - OF_SD_JWT
    assert others == {"wrong_form"}, "test_checks has it"
    assert reasons <= failures.FAILURES.keys()


HONEST = (
    NAME,
    attribute("a group", attributeNames=["name", "degree"]),
    predicate("age", ">=", 18, policyName="at least"),
    predicate("age", "<", 29, degree_of("Maths"), policyName="below"),
    predicate("age", "==", 28, policyName="exactly"),
)


def test_the_hand_written_prover_is_honest_with_an_honest_signature():
    asked = presentations.ask(*HONEST)
    assert judge(asked, prove(asked, VALUES)).is_valid


def test_an_answer_does_not_change_by_being_read():
    case = honest(NAME)
    before = json.dumps(case.presentation)
    assert outcome_of(case).is_valid and json.dumps(case.presentation) == before
