"""The prover's side: create the presentation of selected credentials."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from core.errors import Invalid, Unavailable
from core.text.bounded_json import JSON
from verifications.proofs.ledger_reader import LedgerReader
from verifications.proofs.policy import MAX_TIMESTAMP, Interval, RequiredValue
from verifications.proofs.proof_items import Item
from verifications.proofs.request_reading import ProofRequest
from verifications.proofs.selection import (
    Candidate,
    Selection,
    has_attributes,
    met_restriction,
    unprovable_code,
)
from wallets import anoncreds
from wallets.anoncreds import SubProof, normalise_name
from wallets.anoncreds.objects import RegistryBody

TailsPath = Callable[
    [RegistryBody], str
]  # from a registry's public JSON to a local file
# What is wrong with a selection, by code.
WRONG_SELECTIONS = {
    "unknown_policy": "The verification asks for no item of this name.",
    "selected_twice": "This item has a credential already; select one.",
    "unknown_credential": "The wallet has no such credential.",
    "attribute_missing": "The credential does not have what the item asks for.",
    "restriction_not_met": "The credential does not meet the item's restrictions.",
    "hidden_not_allowed": "The verifier requires a certain value, so it cannot be "
    "hidden.",
}


def create_presentation(
    request: ProofRequest,
    selections: Sequence[Selection],
    candidates: Sequence[Candidate],
    link_secret: str,
    ledger: LedgerReader,
    tails_path: TailsPath | None = None,
) -> dict[str, JSON]:
    """Create the presentation of the selections. Other items stay unanswered.

    If non-revocation is requested, a credential with an index in a registry is proven
    with the newest status list up to the end of the interval, or without a list if
    there is none yet. A selected credential that is revoked is sent too, but its proof
    will not verify. `tails_path` returns the local file for a registry's public JSON;
    without it there are no tails files.

    An item whose predicate the selected credential does not satisfy stays unanswered
    too. `hidden` has no meaning for a predicate. With nothing to prove, the
    presentation is empty.

    Raises
    - Invalid with the code of the first wrong selection and all of them in `errors`,
      by "[index].member": unknown_policy, unknown_credential, selected_twice,
      attribute_missing, restriction_not_met, hidden_not_allowed;
    - Invalid("unknown_registry") if the ledger does not know the registry, or has a
      registry or list that cannot be read;
    - Unavailable("tails_unavailable");
    - PeerError if the request cannot be answered.
    """
    choices = _validate_selections(request.items, selections, candidates)
    provable = [
        choice
        for choice in choices
        if not unprovable_code(choice.item, choice.candidate)
    ]
    if not provable:
        return _empty_presentation()
    entries = [
        _library_entry(group, _revocation_state(group, ledger, tails_path))
        for group in _group_by_sub_proof(provable)
    ]
    used = [choice.candidate for choice in provable]
    return anoncreds.create_presentation(
        _answered_request(request, entries),
        entries,
        {},
        link_secret,
        {one.schema_id: one.schema for one in used},
        {one.definition_id: one.definition for one in used},
    )


class _Choice(NamedTuple):
    """A valid selection.

    companion: the attribute that it must also show for a value restriction, or None.
    """

    item: Item
    candidate: Candidate
    hidden: bool
    companion: str | None

    @property
    def interval(self) -> Interval | None:
        """The interval to prove non-revocation for; None if there is none to prove."""
        return self.item.non_revoked if self.candidate.revocation else None


def _group_by_sub_proof(choices: Iterable[_Choice]) -> list[list[_Choice]]:
    """Group the choices into sub-proofs; each joins the first that can contain it."""
    groups: list[list[_Choice]] = []
    for choice in choices:
        for group in groups:
            if _share_sub_proof([*group, choice]):
                group.append(choice)
                break
        else:
            groups.append([choice])
    return groups


def _share_sub_proof(choices: list[_Choice]) -> bool:
    """Whether one sub-proof can answer all choices.

    They must use one credential and one status list, and none may show an attribute
    that another one compares.
    """
    shown: set[str] = set()  # normalised names
    compared: set[str] = set()
    for choice in choices:
        if choice.item.is_predicate:
            compared.update(choice.item.labels)
        elif not choice.hidden:
            shown.update(choice.item.labels)
        if choice.companion is not None:
            shown.add(normalise_name(choice.companion))
    is_disjoint = shown.isdisjoint(compared)
    credential_ids = {choice.candidate.credential_id for choice in choices}
    intervals = {choice.interval for choice in choices} - {None}
    return len(credential_ids) == 1 and len(intervals) <= 1 and is_disjoint


def _answered_request(
    request: ProofRequest, entries: list[SubProof]
) -> dict[str, JSON]:
    """Return the request as the library needs it: with the answered referents only.

    The library uses a revocation state only if an interval is requested, and ignores
    the intervals of hidden items. So the whole request gets an interval.
    """
    referents = [
        referent
        for entry in entries
        for referent in (*entry.attributes, *entry.predicates)
    ]
    answered = request.prune(referents)
    if any(entry.revocation_state for entry in entries):
        everything: dict[str, JSON] = {"from": 0, "to": MAX_TIMESTAMP}
        answered["non_revoked"] = answered.get("non_revoked") or everything
    return answered


def _revocation_state(
    group: list[_Choice], ledger: LedgerReader, tails_path: TailsPath | None
) -> tuple[int, dict[str, JSON]] | None:
    """Return (timestamp, revocation state) of a sub-proof. group: its choices.

    None if non-revocation is not requested, or there is no status list yet. All its
    choices are of one credential, and have one interval or none.
    """
    candidate = group[0].candidate
    interval = next((choice.interval for choice in group if choice.interval), None)
    if candidate.revocation is None or interval is None:
        return None
    registry_id = candidate.revocation.registry_id
    registry = ledger.revocation_registry(registry_id)
    if registry is None:
        raise Invalid(
            "unknown_registry", "The ledger does not know the credential's registry."
        )
    if not anoncreds.is_registry_of(
        registry, candidate.definition_id, candidate.definition
    ):
        raise Invalid(
            "unknown_registry",
            "The credential's registry is of another definition or issuer, so no "
            "verifier takes it. Ask its issuer for another credential.",
        )
    # The verifier finds the list by its time, so there must be no other one.
    status_list = ledger.final_status_list(registry_id, interval.latest_timestamp)
    if status_list is None:
        return None
    if tails_path is None:
        raise Unavailable("tails_unavailable", "There are no tails files here.")
    state = anoncreds.create_revocation_state(
        candidate.credential, registry, status_list, tails_path(registry)
    )
    return status_list["timestamp"], state


def _library_entry(
    group: list[_Choice], revocation: tuple[int, dict[str, JSON]] | None
) -> SubProof:
    """The sub-proof of a group of choices, as the library takes it."""
    attributes: dict[str, bool] = {}  # by referent: whether the value is shown
    predicates: list[str] = []
    for choice in group:
        item = choice.item
        if item.is_predicate:
            predicates += item.referents
        else:
            attributes |= dict.fromkeys(item.referents, not choice.hidden)
        if choice.companion is not None:
            attributes[item.companions[choice.companion]] = True
    credential = group[0].candidate.credential
    if revocation is None:
        return SubProof(credential, attributes, predicates)
    timestamp, state = revocation
    return SubProof(credential, attributes, predicates, timestamp, state)


def _validate_selections(
    items: Sequence[Item],
    selections: Sequence[Selection],
    candidates: Sequence[Candidate],
) -> list[_Choice]:
    """Return the selections as choices. Invalid as create_presentation() says."""
    by_name = {item.policy_name: item for item in items}
    by_id = {candidate.credential_id: candidate for candidate in candidates}
    choices: list[_Choice] = []
    wrong: list[tuple[str, str]] = []  # the path of a member and a code
    for index, selection in enumerate(selections):
        item = by_name.get(selection.policy_name)
        candidate = by_id.get(selection.credential_id)
        if item is None:
            wrong.append((f"[{index}].policyName", "unknown_policy"))
            continue
        if any(choice.item is item for choice in choices):
            wrong.append((f"[{index}].policyName", "selected_twice"))
            continue
        if candidate is None:
            wrong.append((f"[{index}].credentialId", "unknown_credential"))
            continue
        restriction = met_restriction(item, candidate)
        required = restriction.value if restriction else None
        if not has_attributes(item, candidate):
            wrong.append((f"[{index}].credentialId", "attribute_missing"))
        elif item.restrictions and restriction is None:
            wrong.append((f"[{index}].credentialId", "restriction_not_met"))
        elif selection.hidden and required and not item.is_predicate:
            wrong.append((f"[{index}].hidden", "hidden_not_allowed"))
        # Even for a wrong selection: selected_twice compares with it.
        companion = _companion_attribute(item, required)
        choices.append(_Choice(item, candidate, selection.hidden, companion))
    if wrong:
        first_code = wrong[0][1]
        errors = {path: [WRONG_SELECTIONS[code]] for path, code in wrong}
        raise Invalid(first_code, WRONG_SELECTIONS[first_code], errors=errors)
    return choices


def _companion_attribute(item: Item, required: RequiredValue | None) -> str | None:
    """The attribute whose companion shows the required value; None without one."""
    if required is None:
        return None
    return next(
        (name for name in item.companions if normalise_name(name) == required.label),
        None,
    )


def _empty_presentation() -> dict[str, JSON]:
    """The presentation if nothing can be proven. The library cannot create it."""
    return {
        "proof": {"proofs": [], "aggregated_proof": {"c_hash": "0", "c_list": []}},
        "requested_proof": {
            "revealed_attrs": {},
            "self_attested_attrs": {},
            "unrevealed_attrs": {},
            "predicates": {},
        },
        "identifiers": [],
    }
