"""Why a verification failed, in words. It never contains a value of a credential.

The sentences of the checklist are fixed texts (verifications/proofs/checks.py), and the
names of items are those of the policy.
"""

from collections.abc import Iterable
from typing import Any

from connections.didcomm.reasons import in_words
from tenants import vault
from verifications.models import Verification
from verifications.proofs.failures import FAILURES


def list_reasons(
    verification: Verification,
    checks: list[dict[str, Any]] | None,
    with_advice: bool = False,
) -> list[str]:
    """Return what is wrong in words: the failed checks, or the problem that ended it.

    checks: the unsealed checklist; None on the prover's side. with_advice: also say
    what to do.
    """
    failed = [check for check in checks or [] if check["status"] == "fail"]
    if failed:
        return [reason_of(check, with_advice) for check in failed]
    if verification.problem:
        return [in_words(verification.problem)]
    if verification.is_valid is False:
        return [
            "The verifier says that the proof is not valid. Its own record has why."
        ]
    return []


def reason_of(check: dict[str, Any], with_advice: bool) -> str:
    name = check["policy_name"]
    sentence = f"{name}: {check['message']}" if name else check["message"]
    failure = FAILURES.get(check["code"]) if with_advice else None
    return f"{sentence} {failure.advice}" if failure else sentence


def add_reasons(verifications: Iterable[Verification]) -> None:
    """Set `reasons` on each of these rows, with one query for all data keys."""
    rows: list[Any] = list(verifications)
    checks = vault.unseal_all(rows, "checks")
    for row in rows:
        row.reasons = list_reasons(row, checks[row.pk])
