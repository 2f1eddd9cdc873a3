"""What an exchange is about: names and conditions; its values only when revealed.

A stranger's text about why it ended is a value too.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from agency.words.states import Subject
from connections.didcomm.reasons import find_code
from credentials.models import Credential
from verifications.models import Verification
from verifications.proofs.failures import BOUND_UNANSWERED, UNANSWERED
from verifications.proofs.proof_items import Item
from verifications.wording import predicate_of, value_words

REASON = "Reason, in their words"
NO_ANSWER = (UNANSWERED.code, BOUND_UNANSWERED.code)


@dataclass(frozen=True)
class Value:
    """An attribute of a credential or of a proof.

    item: of the policy, "" for a credential. text: a mask, or the value as people read
    it; "" if there is none. condition: of a comparison, which has no value, in words;
    is_unanswered: whether nothing came for it. has_failed: whether a check of its item
    did.
    """

    item: str
    name: str
    text: str = ""
    condition: str = ""
    is_unanswered: bool = False
    has_failed: bool = False

    @property
    def is_answered(self) -> bool:
        return bool(self.text or self.condition) and not self.is_unanswered


def free_texts(row: Subject, reason: str | None) -> list[Value]:
    """Why it ended, in words of a person or agent that are in no list of ours."""
    problem = row.problem if row.has_free_text else ""
    texts = [text for text in (problem, reason) if text and not find_code(text)]
    return [Value("", REASON, text) for text in texts]


def values_of_credential(row: Credential) -> Iterator[Value]:
    values = row.unsealed_values()
    if values is None:
        values = dict.fromkeys(row.attribute_names, "")
    for name, text in values.items():
        yield Value("", name, value_words(name, text))


def values_of_verification(row: Verification) -> Iterator[Value]:
    """Yield what is asked, with the values of the proof if there is one.

    What failed comes first. A comparison has a condition and no value. Nothing before
    there is a request, nor if the verifier got no answer.
    """
    got_no_answer = row.role == row.Role.VERIFIER and row.state == row.State.REJECTED
    if row.request_body is None or got_no_answer:
        return
    proof = row.unsealed_proof() or {}
    checks = row.unsealed_checks() or []
    failed = {one.get("policyName") for one in checks if one["status"] == "fail"}
    items = row.require_proof_request().items
    for item in sorted(items, key=lambda one: one.policy_name not in failed):
        entry = proof.get(item.policy_name)
        shown = entry.get("attributes", {}) if entry else {}
        for value in values_of_item(item, shown, checks):
            yield replace(value, has_failed=item.policy_name in failed)


def values_of_item(
    item: Item, shown: dict[str, str], checks: list[dict[str, Any]]
) -> Iterator[Value]:
    """shown: the values that answer it."""
    if item.is_predicate:
        predicate = predicate_of(item)
        name, condition = predicate.attribute, predicate.condition
        is_unanswered = any(
            one.get("policyName") == item.policy_name and one.get("code") in NO_ANSWER
            for one in checks
        )
        yield Value(item.policy_name, name, "", condition, is_unanswered)
        return
    for name in item.attribute_names:
        text = value_words(name, shown.get(name, ""))
        yield Value(item.policy_name, name, text)
