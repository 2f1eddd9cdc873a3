"""Every way in which a check fails has a sentence and an advice, in one place."""

import ast
import inspect
import re

import pytest

from verifications.openid4vp import sd_jwt_rules
from verifications.proofs import checks, failures

DEFINED = [
    found for found in vars(failures).values() if isinstance(found, failures.Failure)
]


@pytest.mark.parametrize("failure", DEFINED, ids=lambda failure: failure.code)
def test_each_failure_says_what_is_wrong_and_what_to_do(failure):
    for sentence in (failure.message, failure.advice):
        assert re.fullmatch(r"[A-Z].{20,}[.]", sentence)
    assert failures.FAILURES[failure.code].advice == failure.advice


def test_the_checklist_fails_only_with_these():
    """A new check cannot make a Failure of its own, without advice."""
    tree = ast.parse(inspect.getsource(checks))
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert "Failure" not in {getattr(one, "id", "") for one in called}
    assert "Failure" not in {getattr(one, "attr", "") for one in called}


def test_each_failure_has_one_cause():
    explained = [code for cause in failures.CAUSES for code in cause.failures]
    assert sorted(explained) == sorted(failures.FAILURES)
    for cause in failures.CAUSES:
        assert failures.find_cause(cause.code) == failures.find_cause(cause.message)


def test_a_cause_is_said_once_for_all_items():
    def failed(code, **item):
        return {"rule": "answered", "status": "fail", "code": code} | item

    checks = [
        failed("unanswered", policyName="name"), failed("stale", policyName="role"),
        failed("self_attested", policy_name="year"), failed("gone", message="So."),
        {"rule": "malformed", "status": "pass"},
    ]  # fmt: skip
    no_card, old, gone = failures.list_causes(checks)
    assert no_card[:2] == ("no_card", "No card that proves this.")
    assert no_card.advice == failures.UNANSWERED.advice
    assert no_card.policy_names == ("name", "year")
    assert (old.code, old.policy_names) == ("revoked_or_old_list", ("role",))
    assert gone == ("gone", "So.", "", ())


def test_each_rule_has_words():
    rules = ["malformed", *checks.PRESENTATION_RULES, *checks.ITEM_RULES, "signature"]
    of_sd_jwt = [name for name in sd_jwt_rules.ITEM_RULES if name not in rules]
    assert list(failures.RULES) == rules + of_sd_jwt


def test_a_check_of_an_older_release_keeps_its_message():
    check = {"rule": "gone", "status": "fail", "code": "gone", "message": "It is so."}
    assert failures.in_words(check) == ("", "gone", "gone", "It is so.", "")
