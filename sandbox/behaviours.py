"""What simulated holders answer, by the methods that the wallet API calls.

Credentials are accepted, and presentations made, by the same cryptography as anybody's.
What is wrong with a presentation is what its behaviour says, and the verifier finds it
by its own checks (verifications/proofs/checks.py).
"""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

from connections.exchange import PARTIES
from credentials.models import Credential
from credentials.revocation import reserve_for_issuer, revoke
from sandbox.models import SimulatedHolder
from tenants.models import Tenant
from verifications.models import Verification
from verifications.present_proof import prover
from verifications.proofs.selection import (
    Candidate,
    Selection,
    unfit_code,
)

Behaviour = SimulatedHolder.Behaviour
REASON = "A simulated holder declines everything."
CHANGED = " (changed by the holder)"


def answer_exchange(behaviour: str, exchange: Credential | Verification) -> None:
    """Answer an offer or a request. WrongState if somebody was faster."""
    if behaviour == Behaviour.SILENT:
        return
    if behaviour == Behaviour.DECLINE:
        exchange.decline(REASON)
    elif isinstance(exchange, Credential):
        exchange.accept(reserve_for_issuer(exchange))
    else:
        PROVE[behaviour](exchange)


def change_values(presentation: dict[str, Any]) -> dict[str, Any]:
    """The presentation with each shown value changed, beside its signed encoding.

    So it shows other values than those that were signed.
    """
    changed = copy.deepcopy(presentation)
    shown = changed["requested_proof"]
    groups = shown.get("revealed_attr_groups", {}).values()
    values = [*shown["revealed_attrs"].values()]
    values += [value for group in groups for value in group["values"].values()]
    for value in values:
        value["raw"] += CHANGED
    return changed


def leave_out_comparisons(verification: Verification) -> None:
    """Answer as a holder of values that meet no comparison.

    Nobody can prove a comparison that does not hold, so a wallet leaves it out. Each
    other item is answered with the first credential that fits, if there is one.
    """
    available = prover.find_available(verification)
    selections = [
        Selection(item.policy_name, str(found[0].pk))
        for item, found in available
        if found and not item.is_predicate
    ]
    prover.answer_request(verification, selections)


def prove_with_revoked(verification: Verification) -> None:
    """Revoke the credentials that fit, where this organization issued them; use them.

    Those that cannot be revoked are used as they are. Each revocation is committed and
    published before the presentation is made, so a repeated call finds it done.
    """
    proof_request, candidates, _ = prover.find_candidates(verification)
    revoked_first = sorted(candidates, key=lambda candidate: not candidate.is_revoked)
    selections = []
    for item in proof_request.items:
        # One that fits but for being revoked fits this holder.
        fitting = (
            candidate
            for candidate in revoked_first
            if unfit_code(item, candidate) in (None, "revoked_or_invalid")
        )
        if chosen := next(fitting, None):
            revoke_candidate(verification.tenant, chosen)
            selections.append(Selection(item.policy_name, chosen.credential_id))
    prover.answer_request(verification, selections)


def revoke_candidate(tenant: Tenant, candidate: Candidate) -> None:
    """Revoke a credential that this organization issued, and publish that.

    Nothing happens to one of another issuer, or without a registry. The issuer's row is
    found by the place in the registry, which both rows have.
    """
    if candidate.is_revoked or candidate.revocation is None:
        return
    rows = Credential.objects.filter(
        tenant=tenant,
        role=Credential.Role.ISSUER,
        revocation_registry_id=candidate.revocation.registry_id,
        revocation_index=candidate.revocation.index,
    )
    issued = rows.select_related(*PARTIES).first()
    if issued and not issued.revocation_published_at:
        revoke(issued)


PROVE: dict[str, Callable[[Verification], None]] = {
    Behaviour.ACCEPT: prover.answer_request,
    Behaviour.WRONG_VALUE: partial(prover.answer_request, change=change_values),
    Behaviour.REVOKED: prove_with_revoked,
    Behaviour.PREDICATE_FAILS: leave_out_comparisons,
}
