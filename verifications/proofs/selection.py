"""The holder's side of a proof request: what fits, what to send, and the presentation itself."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from agency.core.errors import Invalid, Unavailable
from verifications.proofs import request as wire
from verifications.proofs.request import Interval, Item
from wallets import anoncreds
from wallets.anoncreds import INT32, Entry, common_view


class Revocation(NamedTuple):
    """A credential's place in its registry, and whether it is known to be revoked."""

    registry_id: str
    index: int  # type: ignore[assignment]
    revoked: bool


class Candidate(NamedTuple):
    """A credential of the wallet: its public names, its raw values and the stored credential.

    revocation: None if it has no place in a registry.
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
    revocation: Revocation | None = None

    @property
    def is_revoked(self) -> bool:
        return self.revocation is not None and self.revocation.revoked


class Selection(NamedTuple):
    """Which credential answers which policy item; hidden: prove it without showing the value."""

    policy_name: str
    credential_id: str
    hidden: bool = False


class Registry(Protocol):
    """Resolves public objects by id, as the ledger's JSON; None when there is no such object."""

    def schema(self, schema_id: str) -> dict | None: ...

    def definition(self, definition_id: str) -> dict | None: ...

    def registry(self, registry_id: str) -> dict | None: ...

    def status_list(self, registry_id: str, timestamp: int) -> dict | None:
        """The newest list of the registry whose own "timestamp" is not later than this one."""
        ...


def available(
    request: dict, candidates: Sequence[Candidate]
) -> list[tuple[Item, list[str]]]:
    """Every item of the request with the ids of the credentials that satisfy all of it.

    Where non-revocation is asked for, those known to be revoked do not.
    Raises PeerError if the request cannot be read.
    """
    return [
        (item, [one.credential_id for one in candidates if not refusal(item, one)])
        for item in wire.items(request)
    ]


def refusal(item: Item, candidate: Candidate) -> str | None:
    """Why a credential does not satisfy all of an item, or None if it does.

    The first that applies of "attribute_not_in_schema", "restriction", "value_restriction",
    "not_a_number", "predicate_not_met", "predicate_out_of_range" and "revoked_or_invalid": known to
    be revoked where non-revocation is asked for.
    """
    if not _has_attributes(item, candidate):
        return "attribute_not_in_schema"
    if _alternative(item, candidate) is None:
        return "value_restriction" if _met_by_name(item, candidate) else "restriction"
    revoked = (
        "revoked_or_invalid" if item.non_revoked and candidate.is_revoked else None
    )
    return _not_held(item, candidate) or revoked


def auto_select(request: dict, candidates: Sequence[Candidate]) -> list[Selection]:
    """The first fitting credential for each item (candidates come oldest first).

    One that is known to be revoked is never taken, whatever is asked for. An item that nothing fits
    is left out. Raises PeerError if the request cannot be read.
    """
    good = [candidate for candidate in candidates if not candidate.is_revoked]
    return [
        Selection(item.policy_name, fitting[0])
        for item, fitting in available(request, good)
        if fitting
    ]


def present(
    request: dict,
    selections: Sequence[Selection],
    candidates: Sequence[Candidate],
    link_secret: str,
    registry: Registry,
    tails_path: Callable[[dict], str] | None = None,
) -> dict:
    """The presentation of what was selected; items without a selection stay unanswered.

    Where non-revocation is asked for, a credential with a place in a registry is shown with the
    newest list up to the end of the interval; if there is none yet, without. A revoked one that is
    chosen all the same is sent as well as it can be: the proof will not verify. `tails_path` gives
    the local file for a registry's public JSON; without it no registry's file can be had.

    An item whose predicate does not hold in the selected credential stays unanswered too. `hidden`
    means nothing for a predicate. With nothing to prove the presentation is an empty one.
    Raises Invalid with the code of the first wrong selection and all of them in `errors`, by
    "[index].member": unknown_policy, unknown_credential, selected_twice, attribute_missing,
    restriction_not_met, hidden_not_allowed; Invalid("unknown_definition", "unknown_registry") for
    what the ledger does not know, Unavailable("tails_unavailable"); PeerError if the request cannot
    be read or answered.
    """
    choices = _choices(wire.items(request), selections, candidates)
    provable = [
        choice for choice in choices if not _not_held(choice.item, choice.candidate)
    ]
    if not provable:
        return _empty()
    entries = [
        _entry(part, _not_revoked(part, registry, tails_path))
        for part in _pack(provable)
    ]
    used = [choice.candidate for choice in provable]
    return anoncreds.create_presentation(
        _answered(request, entries),
        entries,
        {},
        link_secret,
        {one.schema_id: _resolved(registry.schema(one.schema_id)) for one in used},
        {
            one.definition_id: _resolved(registry.definition(one.definition_id))
            for one in used
        },
    )


class _Choice(NamedTuple):
    """A valid selection; companion: the attribute that a value restriction makes it show."""

    item: Item
    candidate: Candidate
    hidden: bool
    companion: str | None

    @property
    def referents(self) -> dict[str, bool]:
        """Attribute referents and whether their values are shown."""
        own = () if self.item.is_predicate else self.item.referents
        referents = dict.fromkeys(own, not self.hidden)
        if self.companion is not None:
            referents[self.item.companions[self.companion]] = True
        return referents

    @property
    def shown(self) -> set[str]:
        own = () if self.item.is_predicate or self.hidden else self.item.attribute_names
        names = own if self.companion is None else (*own, self.companion)
        return set(map(common_view, names))

    @property
    def compared(self) -> set[str]:
        return set(
            map(
                common_view, self.item.attribute_names if self.item.is_predicate else ()
            )
        )

    @property
    def interval(self) -> Interval | None:
        """When it must be shown that the credential is not revoked, if it can be shown at all."""
        return self.item.non_revoked if self.candidate.revocation else None


def _pack(choices: Iterable[_Choice]) -> list[list[_Choice]]:
    """As few sub-proofs as possible: one credential and one list of revocations each, no attribute
    both shown and compared.
    """
    parts: list[list[_Choice]] = []
    for choice in choices:
        part = next((part for part in parts if _go_together([*part, choice])), None)
        if part is None:
            parts.append([choice])
        else:
            part.append(choice)
    return parts


def _go_together(choices: list[_Choice]) -> bool:
    shown = set().union(*(choice.shown for choice in choices))
    compared = set().union(*(choice.compared for choice in choices))
    one_credential = len({choice.candidate.credential_id for choice in choices}) == 1
    one_list = len({choice.interval for choice in choices} - {None}) <= 1
    return one_credential and one_list and shown.isdisjoint(compared)


def _answered(request: dict, entries: list[Entry]) -> dict:
    """The request for the library: it uses a revocation state only where an interval is asked for,
    and does not look for one at items that stay hidden.
    """
    asked = wire.pruned(
        request, [name for one in entries for name in (*one[1], *one[2])]
    )
    if any(one.revocation_state for one in entries):
        asked["non_revoked"] = asked.get("non_revoked") or {
            "from": 0,
            "to": wire.MAX_TIME,
        }
    return asked


def _not_revoked(
    part: list[_Choice], registry: Registry, tails_path: Callable[[dict], str] | None
) -> tuple[int, dict] | None:
    """Timestamp and revocation state for a sub-proof that needs them, if there is a list yet."""
    place = part[0].candidate.revocation
    interval = next((choice.interval for choice in part if choice.interval), None)
    if place is None or interval is None:
        return None
    known = registry.registry(place.registry_id)
    if known is None:
        raise Invalid(
            "unknown_registry", "The ledger does not know the credential's registry."
        )
    status_list = registry.status_list(place.registry_id, wire.end(interval))
    if status_list is None:
        return None
    if tails_path is None:
        raise Unavailable("tails_unavailable", "There are no tails files here.")
    credential, path = part[0].candidate.credential, tails_path(known)
    state = anoncreds.create_revocation_state(credential, known, status_list, path)
    return status_list["timestamp"], state


def _entry(part: list[_Choice], not_revoked: tuple[int, dict] | None) -> Entry:
    attributes: dict[str, bool] = {}
    predicates: list[str] = []
    for choice in part:
        attributes |= choice.referents
        predicates += choice.item.referents if choice.item.is_predicate else ()
    return Entry(
        part[0].candidate.credential, attributes, predicates, *(not_revoked or ())
    )


def _choices(
    items: list[Item], selections: Sequence[Selection], candidates: Sequence[Candidate]
) -> list[_Choice]:
    by_name = {item.policy_name: item for item in items}
    by_id = {candidate.credential_id: candidate for candidate in candidates}
    choices: list[_Choice] = []
    problems = _Problems()
    for index, selection in enumerate(selections):
        item = by_name.get(selection.policy_name)
        candidate = by_id.get(selection.credential_id)
        if item is None:
            problems.add(index, "policyName", "unknown_policy")
        elif any(choice.item is item for choice in choices):
            problems.add(index, "policyName", "selected_twice")
        elif candidate is None:
            problems.add(index, "credentialId", "unknown_credential")
        else:
            choices.append(_choice(problems, index, item, candidate, selection.hidden))
    problems.refuse()
    return choices


def _choice(
    problems: "_Problems", index: int, item: Item, candidate: Candidate, hidden: bool
) -> _Choice:
    alternative = _alternative(item, candidate)
    if not _has_attributes(item, candidate):
        problems.add(index, "credentialId", "attribute_missing")
    elif alternative is None:
        problems.add(index, "credentialId", "restriction_not_met")
    elif hidden and "value" in alternative and not item.is_predicate:
        problems.add(index, "hidden", "hidden_not_allowed")
    return _Choice(item, candidate, hidden, _companion(item, alternative or {}))


class _Problems:
    """Every wrong selection; the first one gives the error its code."""

    SENTENCES = {
        "unknown_policy": "The verification asks for no item of this name.",
        "selected_twice": "This item has a credential already; select one.",
        "unknown_credential": "The wallet holds no such credential.",
        "attribute_missing": "The credential does not have what the item asks for.",
        "restriction_not_met": "The credential does not meet the item's restrictions.",
        "hidden_not_allowed": "The verifier requires a certain value, so it cannot be hidden.",
    }

    def __init__(self) -> None:
        self.codes: list[str] = []
        self.errors: dict[str, list[str]] = {}

    def add(self, index: int, member: str, code: str) -> None:
        self.codes.append(code)
        self.errors[f"[{index}].{member}"] = [self.SENTENCES[code]]

    def refuse(self) -> None:
        if self.codes:
            raise Invalid(
                self.codes[0], self.SENTENCES[self.codes[0]], errors=self.errors
            )


def _has_attributes(item: Item, candidate: Candidate) -> bool:
    views = set(map(common_view, candidate.values))
    return views.issuperset(map(common_view, item.attribute_names))


def _alternative(item: Item, candidate: Candidate) -> dict | None:
    """The restriction that the credential meets: one without a value if there is one."""
    met = [one for one in _met_by_name(item, candidate) if _has_value(one, candidate)]
    return min(met, key=lambda restriction: "value" in restriction, default=None)


def _met_by_name(item: Item, candidate: Candidate) -> list[dict]:
    """The restrictions that the credential meets, whatever values they require."""
    facts = {
        "schemaId": candidate.schema_id,
        "schemaIssuerDid": candidate.schema_issuer_did,
        "schemaName": candidate.schema_name,
        "schemaVersion": candidate.schema_version,
        "issuerDid": candidate.issuer_did,
        "credentialDefinitionId": candidate.definition_id,
    }
    return [one for one in item.restrictions or [{}] if wire.meets_names(one, facts)]


def _has_value(restriction: dict, candidate: Candidate) -> bool:
    required = restriction.get("value")
    if required is None:
        return True
    return required["attributeValue"] == _get(
        candidate.values, required["attributeName"]
    )


def _companion(item: Item, alternative: dict) -> str | None:
    required = alternative.get("value")
    if required is None:
        return None
    view = common_view(required["attributeName"])
    return next((name for name in item.companions if common_view(name) == view), None)


def _not_held(item: Item, candidate: Candidate) -> str | None:
    """Why a predicate cannot be proven; the library computes the differences in 32 bits."""
    if not item.is_predicate:
        return None
    value = number(candidate, item.attribute_names[0])
    if value is None:
        return "not_a_number"
    differences = [_difference(value, *bound) for bound in item.bounds]
    if any(difference < 0 for difference in differences):
        return "predicate_not_met"
    return (
        None if all(one in INT32 for one in differences) else "predicate_out_of_range"
    )


def _difference(value: int, predicate_type: str, threshold: int) -> int:
    difference = (
        value - threshold if predicate_type.startswith(">") else threshold - value
    )
    return difference if predicate_type.endswith("=") else difference - 1


def number(candidate: Candidate, name: str) -> int | None:
    """The signed number, if it is one that can be compared."""
    encoded = _get(candidate.credential["values"], name)["encoded"]
    return int(encoded) if len(encoded) <= 11 and int(encoded) in INT32 else None


def _get(values: dict, name: str) -> Any:
    return next(
        (one for key, one in values.items() if common_view(key) == common_view(name)),
        None,
    )


def _resolved(found: dict | None) -> dict:
    if found is None:
        raise Invalid(
            "unknown_definition",
            "The ledger does not know the credential's definition.",
        )
    return found


def _empty() -> dict:
    """What is sent when nothing can be proven; the library refuses to make it."""
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
