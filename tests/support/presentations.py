"""Short helpers for tests of verifications: Acme requests, Alice presents."""

from tests import fixtures
from tests.fixtures import ALICE_LINK_SECRET, Ledger, candidate, ledger, tails_path
from verifications.proofs import (
    checks,
    presentation_building,
    proof_policy,
    selection,
)
from verifications.proofs.checks import Outcome
from verifications.proofs.request_building import build_request
from verifications.proofs.selection import Candidate, Selection
from wallets import anoncreds

FABER = fixtures.stored("degree").schema["issuerId"]
DEGREE = fixtures.stored("degree").definition_id
BADGE = fixtures.stored("badge").definition_id


def attribute(name: str, *restrictions: dict, **more: object) -> dict:
    return {"policyName": name, "restrictions": list(restrictions)} | more


def predicate(
    name: str, kind: str, value: int, *restrictions: dict, **more: object
) -> dict:
    return {
        "attributeName": name,
        "predicateType": kind,
        "predicateValue": value,
        "restrictions": list(restrictions),
    } | more


def ask(*items: dict, nonce: str | None = None, at: int | None = None) -> dict:
    """Return the request of a policy with these items. at: the non-revocation time."""
    body = {
        "name": "Proof",
        "version": "1.0",
        "attributes": [item for item in items if "predicateType" not in item],
        "predicates": [item for item in items if "predicateType" in item],
    }
    return build_request(
        proof_policy.normalise(body), nonce or anoncreds.generate_nonce(), at
    )


def answer(
    request: dict,
    *candidates: Candidate,
    hidden: tuple[str, ...] = (),
) -> dict:
    """Return the presentation of autoSelect, by default with Alice's degree.

    hidden: the items whose values are not shown.
    """
    held = candidates or (candidate("degree"),)
    chosen = [
        one._replace(hidden=one.policy_name in hidden)
        for one in selection.auto_select(request, held)
    ]
    return presentation_building.create_presentation(
        request, chosen, held, ALICE_LINK_SECRET, ledger(), tails_path
    )


def select(request: dict, held: list[Candidate], *chosen: Selection) -> dict:
    return presentation_building.create_presentation(
        request, chosen, held, ALICE_LINK_SECRET, ledger(), tails_path
    )


def judge(
    request: dict,
    presentation: object,
    known: Ledger | None = None,
    at: int | None = None,
    allows_interval: bool = False,
) -> Outcome:
    return checks.judge_presentation(
        request, presentation, known or ledger(), at, allows_interval
    )


def codes(outcome: Outcome) -> set[str]:
    return {one.code for one in outcome.checks if one.status == "fail"}
