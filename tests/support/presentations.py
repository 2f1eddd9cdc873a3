"""Short helpers for tests of verifications: Acme requests, Alice presents."""

from collections.abc import Callable, Sequence

from tests import fixtures
from tests.fixtures import ALICE_LINK_SECRET, Ledger, candidate, ledger, tails_path
from verifications.proofs import checks, presentation_building, proof_policy, selection
from verifications.proofs.checks import Outcome
from verifications.proofs.proof_items import Interval
from verifications.proofs.request_building import build_request
from verifications.proofs.request_reading import ProofRequest
from verifications.proofs.selection import Candidate, Selection
from wallets import anoncreds

FABER = fixtures.stored("degree").schema["issuerId"]
DEGREE = fixtures.stored("degree").definition_id
BADGE = fixtures.stored("badge").definition_id


def attribute(name: str, *restrictions: dict, **more: object) -> dict:
    return {"policyName": name, "restrictions": list(restrictions)} | more


def predicate(
    name: str, kind: str, value: object, *restrictions: dict, **more: object
) -> dict:
    compared = {"predicateType": kind, "predicateValue": value}
    asked = {"attributeName": name, "restrictions": list(restrictions)}
    return asked | compared | more


def required(name: str, value: str | None) -> dict:
    """Return a restriction to this value of an attribute."""
    return {"value": {"attributeName": name, "attributeValue": value}}


def policy_of(*items: dict, **more: object) -> dict:
    """Return the body of a policy with these items."""
    return {
        "name": "Proof",
        "version": "1.0",
        "attributes": [item for item in items if "predicateType" not in item],
        "predicates": [item for item in items if "predicateType" in item],
    } | more


def ask(*items: dict, nonce: str | None = None, at: int | None = None) -> dict:
    """Return the request of a policy with these items. at: the non-revocation time."""
    policy = proof_policy.normalise(policy_of(*items))
    return build_request(policy, nonce or anoncreds.generate_nonce(), at)


def answer(request: dict, *candidates: Candidate, hidden: tuple[str, ...] = ()) -> dict:
    """Return the presentation of autoSelect, by default with Alice's degree.

    hidden: the items whose values are not shown.
    """
    held = candidates or (candidate("degree"),)
    found = selection.auto_select(ProofRequest.parse(request).items, held)
    chosen = (one._replace(hidden=one.policy_name in hidden) for one in found)
    return select(request, held, *chosen)


def select(
    request: dict,
    held: Sequence[Candidate],
    *chosen: Selection,
    known: Ledger | None = None,
    tails: Callable | None = tails_path,
) -> dict:
    """Return the presentation of these credentials, by the ledger that is known."""
    return presentation_building.create_presentation(
        ProofRequest.parse(request),
        chosen,
        held,
        ALICE_LINK_SECRET,
        known or ledger(),
        tails,
    )


def judge(
    request: dict,
    presentation: object,
    known: Ledger | None = None,
    at: int | None = None,
    allows_interval: bool = False,
) -> Outcome:
    at_receipt = None if at is None else Interval(None, at)
    parsed = ProofRequest.parse(request)
    return checks.judge_presentation(
        parsed, presentation, known or ledger(), at_receipt, allows_interval
    )


def codes(outcome: Outcome) -> set[str]:
    return {one.code for one in outcome.checks if one.status == "fail"}
