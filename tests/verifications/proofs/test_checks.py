import copy

import pytest

from core.errors import Unavailable
from tests.fixtures import candidate, ledger
from tests.support.presentations import answer, ask, attribute, codes, judge, predicate
from verifications.proofs import checks

FLAGS = {"revealed": False, "selfAttested": False, "conditional": False}
FLAGS["format"] = "anoncreds"
HOSTILE = [None, True, -1, 2**70, "", "-1", "9" * 1400, "\ud800", [], {}]


def statuses(outcome, rule):
    return {one.policy_name: one.status for one in outcome.checks if one.rule == rule}


def leaves(value, path=()):
    yield path
    members = value.items() if isinstance(value, dict) else ()
    elements = enumerate(value[:2]) if isinstance(value, list) else ()
    for key, one in (*members, *elements):
        yield from leaves(one, (*path, key))


def changed(value, path, new):
    if not path:
        return new
    value = copy.copy(value)
    value[path[0]] = changed(value[path[0]], path[1:], new)
    return value


def test_a_good_answer_passes_every_check():
    asked = ask(attribute("name"), predicate("age", ">", 18))
    outcome = judge(asked, answer(asked))
    rules = len(checks.PRESENTATION_RULES) + 2 * len(checks.ITEM_RULES) + 1
    assert outcome.is_valid and len(outcome.checks) == rules
    assert {(one.status, one.code, one.message) for one in outcome.checks} == {
        ("pass", None, "")
    }


def test_the_proof_speaks_the_words_of_the_policy():
    asked = ask(
        attribute("NAME"),
        attribute("who", attributeNames=["degree", "name"]),
        attribute("hidden", attributeNames=["name"]),
        predicate("age", ">", 18, policyName="adult"),
    )
    values = {"degree": "Maths", "name": "Alice"}
    assert judge(asked, answer(asked, hidden=("hidden",))).proof == {
        "NAME": FLAGS | {"name": "NAME", "value": "Alice", "revealed": True},
        "who": FLAGS | {"attributes": values, "revealed": True},
        "hidden": FLAGS | {"name": "name"},
        "adult": FLAGS | {"name": "age", "value": "true", "conditional": True},
    }


def test_the_proof_of_an_empty_answer_has_no_values_and_no_predicate_is_true():
    who = attribute("who", attributeNames=["salary", "name"])
    rich = predicate("salary", ">", 18, policyName="rich")
    asked = ask(attribute("salary"), who, rich, predicate("age", ">", 18))
    outcome, false = (
        judge(asked, answer(asked)),
        {"value": "false", "conditional": True},
    )
    assert not outcome.is_valid
    assert outcome.proof == {
        "salary": FLAGS | {"name": "salary"}, "who": FLAGS,
        "rich": FLAGS | {"name": "salary"} | false, "age": FLAGS | {"name": "age"} | false,
    }  # fmt: skip


def test_a_failed_item_does_not_stop_the_checks_of_another_but_that_of_the_whole_does():
    asked = ask(attribute("name"), attribute("salary"))
    sent = answer(asked)
    outcome = judge(asked, sent)
    assert statuses(outcome, "answered") == {"name": "pass", "salary": "fail"}
    assert statuses(outcome, "encoding") == {"name": "pass", "salary": "skipped"}
    assert statuses(outcome, "signature") == {None: "skipped"}
    sent["identifiers"] *= 4
    outcome = judge(asked, sent)
    assert codes(outcome) == {"identifiers_mismatch"}
    assert set(statuses(outcome, "answered").values()) == {"skipped"}


def test_a_number_is_shown_as_it_was_sent():
    asked = ask(attribute("age"))
    presentation = answer(asked)
    presentation["requested_proof"]["revealed_attrs"]["age"]["raw"] = "+0028"
    outcome = judge(asked, presentation)
    assert outcome.is_valid and outcome.proof["age"]["value"] == "+0028"


def test_a_group_is_answered_as_a_group_of_its_names_or_hidden():
    asked = ask(attribute("who", attributeNames=["name", "degree"]))
    assert judge(asked, answer(asked, hidden=("who",))).is_valid
    presentation = answer(asked)
    requested = presentation["requested_proof"]
    group = requested["revealed_attr_groups"]["who"]
    group["values"]["NAME"] = group["values"].pop("name")
    assert codes(judge(asked, presentation)) == {"wrong_form"}
    single = {"sub_proof_index": 0} | group["values"]["degree"]
    requested |= {"revealed_attr_groups": {}, "revealed_attrs": {"who": single}}
    assert codes(judge(asked, presentation)) == {"wrong_form"}


def test_a_ledger_out_of_reach_is_nobodys_failure():
    class Down:
        def definition(self, definition_id):
            raise Unavailable("ledger_unavailable", "The ledger is out of reach.")

        schema = definition

    asked = ask(attribute("name"))
    with pytest.raises(Unavailable):
        judge(asked, answer(asked), Down())


def test_the_ledger_is_asked_once_for_each_definition():
    calls = []
    known = ledger()
    known.definition = lambda name: calls.append(name) or known.definitions.get(name)
    asked = ask(attribute("age"), predicate("age", ">", 18, policyName="adult"))
    assert judge(asked, answer(asked), known).is_valid and len(calls) == 1


@pytest.fixture(scope="module")
def exchange():
    asked = ask(
        attribute("name"),
        attribute("who", attributeNames=["Full Name", "level"]),
        predicate("age", ">", 18),
    )
    return asked, answer(asked, candidate("degree"), candidate("badge"))


@pytest.mark.slow
def test_no_change_of_any_leaf_raises(exchange):
    asked, presentation = exchange
    survivors = set()
    for path in leaves(presentation):
        for hostile in HOSTILE:
            outcome = judge(asked, changed(presentation, path, hostile))
            if outcome.is_valid:
                survivors.add(path[-1])
    harmless = {"non_revoc_proof", "ge_proofs", "self_attested_attrs"}
    harmless |= {"unrevealed_attrs", "rev_reg_id", "timestamp", "sub_proof_index"}
    assert survivors <= harmless


@pytest.mark.parametrize("extra", ["m1", "requested", 7])
def test_members_we_do_not_know_never_reach_the_library(exchange, extra):
    asked, presentation = exchange
    path = ("proof", "proofs", 0, "primary_proof", "eq_proof")
    equality = presentation["proof"]["proofs"][0]["primary_proof"]["eq_proof"]
    outcome = judge(asked, changed(presentation, path, equality | {extra: "5"}))
    assert outcome.is_valid is (extra != "m1")


def test_every_check_failure_has_a_sentence(exchange):
    asked, presentation = exchange
    outcome = judge(asked, changed(presentation, ("identifiers",), []))
    assert [one.message for one in outcome.checks if one.code] == [
        "The proofs and the credentials they name do not correspond."
    ]
