"""Why a verification failed, in words. It never contains a value of a credential.

The sentences are fixed texts (verifications/proofs/failures.py), and the names of items
are those of the policy.
"""

from collections.abc import Iterable
from typing import Any

from tenants import vault
from verifications.models import Verification
from verifications.proofs.failures import CauseInWords, list_causes


def list_reasons(
    verification: Verification,
    checks: list[dict[str, Any]] | None,
    with_advice: bool,
) -> list[str]:
    """Return what is wrong in words: the causes, or the problem that ended it.

    checks: the unsealed checklist; None on the prover's side. with_advice: also say
    what to do.
    """
    if causes := list_causes(checks or ()):
        return [reason_of(cause, with_advice) for cause in causes]
    if verification.problem:
        return [verification.problem_in_words]
    if verification.is_valid is False:
        return [
            "The verifier says that the proof is not valid. Its own record has why."
        ]
    return []


def reason_of(cause: CauseInWords, with_advice: bool) -> str:
    names = ", ".join(cause.policy_names)
    sentence = f"{names}: {cause.message}" if names else cause.message
    return f"{sentence} {cause.advice}" if with_advice else sentence


def add_reasons(
    verifications: Iterable[Verification], with_advice: bool = False
) -> None:
    """Set `reasons` on each of these rows, with one query for all data keys."""
    rows: list[Any] = list(verifications)
    checks = vault.unseal_all(rows, "checks")
    for row in rows:
        row.reasons = list_reasons(row, checks[row.pk], with_advice)
