"""The holder's side: find credentials that fit, select them, create a presentation."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from agency.core.errors import Invalid, Unavailable
from verifications.proofs.proof_items import (
    MAX_TIMESTAMP,
    Interval,
    Item,
    matches_facts,
)
from verifications.proofs.request_reading import prune_request, read_items
from wallets import anoncreds
from wallets.anoncreds import INT32, SubProof, normalise_name

TailsPath = Callable[[dict], str]
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


class RevocationStatus(NamedTuple):
    """A credential's index in its registry, and whether it is known to be revoked."""

    registry_id: str
    index: int  # type: ignore[assignment]
    revoked: bool


class Candidate(NamedTuple):
    """A credential of the wallet: public ids, raw values and the stored credential.

    revocation: None if it has no index in a revocation registry.
    """

    credential_id: str
    definition_id: str
    schema_id: str
    issuer_did: str
    schema_issuer_did: str
    schema_name: str
    schema_version: str
    values: dict[str, str]
    credential: dict
    revocation: RevocationStatus | None = None

    @property
    def is_revoked(self) -> bool:
        return self.revocation is not None and self.revocation.revoked


class Selection(NamedTuple):
    """The credential that answers a policy item.

    hidden: prove the attribute without showing its value.
    """

    policy_name: str
    credential_id: str
    hidden: bool = False


class LedgerReader(Protocol):
    """Returns public objects by id, as the ledger's JSON. None for an unknown id."""

    def schema(self, schema_id: str) -> dict | None: ...

    def definition(self, definition_id: str) -> dict | None: ...

    def revocation_registry(self, registry_id: str) -> dict | None: ...

    def status_list(self, registry_id: str, timestamp: int) -> dict | None:
        """The newest list of the registry up to `timestamp`, in unix seconds."""
        ...

    def final_status_list(self, registry_id: str, timestamp: int) -> dict | None:
        """Like status_list(), but no other list of its time will replace it."""
        ...


def find_fitting(
    request: dict, candidates: Sequence[Candidate]
) -> list[tuple[Item, list[str]]]:
    """Return each item of the request with the ids of the credentials that satisfy it.

    If non-revocation is requested, credentials known to be revoked are left out.
    Raises PeerError if the request cannot be read.
    """
    return [
        (
            item,
            [one.credential_id for one in candidates if not refusal_code(item, one)],
        )
        for item in read_items(request)
    ]


def refusal_code(item: Item, candidate: Candidate) -> str | None:
    """The code of why a credential does not satisfy an item, or None if it does.

    The first that applies of "attribute_not_in_schema", "restriction",
    "value_restriction", "not_a_number", "predicate_not_met", "predicate_out_of_range"
    and "revoked_or_invalid". The last one means that non-revocation is requested and
    the credential is known to be revoked.
    """
    if not _has_attributes(item, candidate):
        return "attribute_not_in_schema"
    if _met_restriction(item, candidate) is None:
        has_other_value = bool(_restrictions_met_by_name(item, candidate))
        return "value_restriction" if has_other_value else "restriction"
    if code := _predicate_refusal(item, candidate):
        return code
    if item.non_revoked and candidate.is_revoked:
        return "revoked_or_invalid"
    return None


def auto_select(request: dict, candidates: Sequence[Candidate]) -> list[Selection]:
    """Select the first credential that fits for each item. Pass the oldest one first.

    A credential known to be revoked is never selected, even if non-revocation is not
    requested. An item that no credential fits is left out. Raises PeerError if the
    request cannot be read.
    """
    usable = [candidate for candidate in candidates if not candidate.is_revoked]
    return [
        Selection(item.policy_name, credential_ids[0])
        for item, credential_ids in find_fitting(request, usable)
        if credential_ids
    ]


def create_presentation(
    request: dict,
    selections: Sequence[Selection],
    candidates: Sequence[Candidate],
    link_secret: str,
    ledger: LedgerReader,
    tails_path: TailsPath | None = None,
) -> dict:
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
    - Invalid("unknown_definition") or Invalid("unknown_registry") if the ledger does
      not know an object;
    - Unavailable("tails_unavailable");
    - PeerError if the request cannot be read or answered.
    """
    choices = _validate_selections(read_items(request), selections, candidates)
    provable = [
        choice
        for choice in choices
        if not _predicate_refusal(choice.item, choice.candidate)
    ]
    if not provable:
        return _empty_presentation()
    entries = [
        _library_entry(part, _revocation_state(part, ledger, tails_path))
        for part in _group_by_sub_proof(provable)
    ]
    used = [choice.candidate for choice in provable]
    return anoncreds.create_presentation(
        _answered_request(request, entries),
        entries,
        {},
        link_secret,
        {one.schema_id: _require_known(ledger.schema(one.schema_id)) for one in used},
        {
            one.definition_id: _require_known(ledger.definition(one.definition_id))
            for one in used
        },
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
    parts: list[list[_Choice]] = []
    for choice in choices:
        for part in parts:
            if _share_sub_proof([*part, choice]):
                part.append(choice)
                break
        else:
            parts.append([choice])
    return parts


def _share_sub_proof(choices: list[_Choice]) -> bool:
    """Whether one sub-proof can answer all choices.

    They must use one credential and one status list, and none may show an attribute
    that another one compares.
    """
    shown: list[str] = []
    compared: list[str] = []
    for choice in choices:
        if choice.item.is_predicate:
            compared += choice.item.attribute_names
        elif not choice.hidden:
            shown += choice.item.attribute_names
        if choice.companion is not None:
            shown.append(choice.companion)
    is_disjoint = set(map(normalise_name, shown)).isdisjoint(
        map(normalise_name, compared)
    )
    credential_ids = {choice.candidate.credential_id for choice in choices}
    intervals = {choice.interval for choice in choices} - {None}
    return len(credential_ids) == 1 and len(intervals) <= 1 and is_disjoint


def _answered_request(request: dict, entries: list[SubProof]) -> dict:
    """Return the request as the library needs it: with the answered referents only.

    The library uses a revocation state only if an interval is requested, and ignores
    the intervals of hidden items. So the whole request gets an interval.
    """
    referents = [
        referent
        for entry in entries
        for referent in (*entry.attributes, *entry.predicates)
    ]
    answered = prune_request(request, referents)
    if any(entry.revocation_state for entry in entries):
        everything = {"from": 0, "to": MAX_TIMESTAMP}
        answered["non_revoked"] = answered.get("non_revoked") or everything
    return answered


def _revocation_state(
    part: list[_Choice], ledger: LedgerReader, tails_path: TailsPath | None
) -> tuple[int, dict] | None:
    """Return (timestamp, revocation state) of a sub-proof.

    None if non-revocation is not requested, or there is no status list yet.
    """
    candidate = part[0].candidate
    interval = next((choice.interval for choice in part if choice.interval), None)
    if candidate.revocation is None or interval is None:
        return None
    registry_id = candidate.revocation.registry_id
    registry = ledger.revocation_registry(registry_id)
    if registry is None:
        raise Invalid(
            "unknown_registry", "The ledger does not know the credential's registry."
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
    part: list[_Choice], revocation: tuple[int, dict] | None
) -> SubProof:
    attributes: dict[str, bool] = {}  # by referent: whether the value is shown
    predicates: list[str] = []
    for choice in part:
        item = choice.item
        if item.is_predicate:
            predicates += item.referents
        else:
            attributes |= dict.fromkeys(item.referents, not choice.hidden)
        if choice.companion is not None:
            attributes[item.companions[choice.companion]] = True
    credential = part[0].candidate.credential
    if revocation is None:
        return SubProof(credential, attributes, predicates)
    timestamp, state = revocation
    return SubProof(credential, attributes, predicates, timestamp, state)


def _validate_selections(
    items: list[Item], selections: Sequence[Selection], candidates: Sequence[Candidate]
) -> list[_Choice]:
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
        restriction = _met_restriction(item, candidate)
        if not _has_attributes(item, candidate):
            wrong.append((f"[{index}].credentialId", "attribute_missing"))
        elif restriction is None:
            wrong.append((f"[{index}].credentialId", "restriction_not_met"))
        elif selection.hidden and "value" in restriction and not item.is_predicate:
            wrong.append((f"[{index}].hidden", "hidden_not_allowed"))
        companion = _companion_attribute(item, restriction or {})
        choices.append(_Choice(item, candidate, selection.hidden, companion))
    if wrong:
        first_code = wrong[0][1]
        errors = {path: [WRONG_SELECTIONS[code]] for path, code in wrong}
        raise Invalid(first_code, WRONG_SELECTIONS[first_code], errors=errors)
    return choices


def _has_attributes(item: Item, candidate: Candidate) -> bool:
    labels = set(map(normalise_name, candidate.values))
    return labels.issuperset(map(normalise_name, item.attribute_names))


def _met_restriction(item: Item, candidate: Candidate) -> dict | None:
    """The restriction that the credential meets, one without a value if possible.

    {} if the item has no restrictions. None if the credential meets none of them.
    """
    met = []
    for restriction in _restrictions_met_by_name(item, candidate):
        required = restriction.get("value")
        if required is None or required["attributeValue"] == _value_of(
            candidate.values, required["attributeName"]
        ):
            met.append(restriction)
    return min(met, key=lambda restriction: "value" in restriction, default=None)


def _restrictions_met_by_name(item: Item, candidate: Candidate) -> list[dict]:
    """The restrictions that the credential meets, leaving required values aside."""
    facts = {
        "schemaId": candidate.schema_id,
        "schemaIssuerDid": candidate.schema_issuer_did,
        "schemaName": candidate.schema_name,
        "schemaVersion": candidate.schema_version,
        "issuerDid": candidate.issuer_did,
        "credentialDefinitionId": candidate.definition_id,
    }
    return [one for one in item.restrictions or [{}] if matches_facts(one, facts)]


def _companion_attribute(item: Item, restriction: dict) -> str | None:
    """The attribute whose companion shows the required value; None without one."""
    required = restriction.get("value")
    if required is None:
        return None
    label = normalise_name(required["attributeName"])
    return next(
        (name for name in item.companions if normalise_name(name) == label), None
    )


def _predicate_refusal(item: Item, candidate: Candidate) -> str | None:
    """The code of why a predicate cannot be proven, or None.

    The library computes differences in 32 bits.
    """
    if not item.is_predicate:
        return None
    value = comparable_number(candidate, item.attribute_names[0])
    if value is None:
        return "not_a_number"
    differences = []  # what the library proves to be at least 0
    for predicate_type, threshold in item.comparisons:
        difference = value - threshold
        if predicate_type.startswith("<"):
            difference = -difference
        if predicate_type in (">", "<"):
            difference -= 1
        differences.append(difference)
    if any(difference < 0 for difference in differences):
        return "predicate_not_met"
    if any(difference not in INT32 for difference in differences):
        return "predicate_out_of_range"
    return None


def comparable_number(candidate: Candidate, name: str) -> int | None:
    """The signed number of an attribute, if it has at most 32 bits."""
    encoded = _value_of(candidate.credential["values"], name)["encoded"]
    # 11 characters include the sign. A text is signed as a much longer number, which
    # need not be parsed.
    if len(encoded) > 11:
        return None
    number = int(encoded)
    return number if number in INT32 else None


def _value_of(values: dict, name: str) -> Any:
    label = normalise_name(name)
    return next(
        (one for key, one in values.items() if normalise_name(key) == label), None
    )


def _require_known(public: dict | None) -> dict:
    if public is None:
        raise Invalid(
            "unknown_definition",
            "The ledger does not know the credential's definition.",
        )
    return public


def _empty_presentation() -> dict:
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
