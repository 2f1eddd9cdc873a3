"""Convert between policies and a prover's proposals (RFCs 0037, 0454).

A proposal is a preview in 1.0 and a proof request in 2.0. A preview has no
alternatives and no `==`, and restricts by definition, schema and issuer only.
"""

from typing import NotRequired, TypedDict

from connections.didcomm.formats import PROOF_PROPOSAL, attachment_of, format_of
from connections.didcomm.message import Message
from core.errors import Invalid, PeerError
from core.text.bounded_json import JSON, Members
from verifications.proofs import proof_policy
from verifications.proofs.policy import (
    NO_REQUIREMENT,
    REVOCATION_REQUIREMENT,
    Policy,
    PolicyItem,
)
from verifications.proofs.proof_items import MAX_REFERENTS, PREDICATE_TYPES
from verifications.proofs.request_reading import ProofRequest

# The API's name -> the name in a preview.
RESTRICTION_NAMES = {
    "credentialDefinitionId": "cred_def_id",
    "schemaId": "schema_id",
    "issuerDid": "issuer_did",
}
TEXT_NAMES = {
    "mimeType": "mime-type",
    "value": "value",
    "referent": "referent",
    **RESTRICTION_NAMES,
}
DEFAULT_NAME = "Proposal"
DEFAULT_VERSION = "1.0"
# Members that a proposal in 2.0 may omit. The verifier chooses its own nonce.
REQUEST_DEFAULTS = {"name": DEFAULT_NAME, "version": DEFAULT_VERSION, "nonce": "1"}
MAX_TEXT_LENGTH = 10_000
# Of an attribute or a predicate: texts, and a `threshold` that may be anything.
Entry = Members


class Preview(TypedDict):
    """The entries of a proposal, in the names of RFC 0037. comment: as it is stored."""

    attributes: list[Entry]
    predicates: list[Entry]
    comment: NotRequired[str]


def build_preview(policy: Policy) -> Preview:
    """Return the preview of a policy.

    Raises Invalid("invalid_policy") if a preview cannot express the policy.
    """
    _check_expressible(policy)
    return _preview_of(policy)


def _preview_of(policy: Policy) -> Preview:
    attributes: list[Entry] = [
        {"name": name, "referent": item.policy_name, **_restriction_to_wire(item)}
        for item in policy.attributes
        for name in item.attribute_names
    ]
    predicates: list[Entry] = [
        {
            "name": item.attribute_names[0],
            "referent": item.policy_name,
            "predicate": item.predicate_type,
            "threshold": item.threshold,
            **_restriction_to_wire(item),
        }
        for item in policy.predicates
    ]
    return {"attributes": attributes, "predicates": predicates}


def _restriction_to_wire(item: PolicyItem) -> dict[str, str]:
    """The first restriction in the names of a preview, which has no alternatives.

    A received proposal in 2.0 may have more restrictions.
    """
    facts = item.restrictions[0].facts if item.restrictions else {}
    return {
        RESTRICTION_NAMES[name]: text
        for name, text in facts.items()
        if name in RESTRICTION_NAMES
    }


def _check_expressible(policy: Policy) -> None:
    errors: dict[str, list[str]] = {}
    for path, item in policy.items_by_path():
        if item.predicate_type == "==":
            sentence = "A proposal compares with >=, >, <= or <."
            errors[f"{path}.predicateType"] = [sentence]
        if item.allows_text:
            sentence = "Leave it out: only the verifier can allow text."
            errors[f"{path}.allowText"] = [sentence]
        if len(item.restrictions) > 1 or any(
            one.value
            or one.proven_by
            or one.or_twin
            or one.facts.keys() - RESTRICTION_NAMES.keys()
            for one in item.restrictions
        ):
            names = ", ".join(RESTRICTION_NAMES)
            sentence = f"Give at most one restriction, with {names} only."
            errors[f"{path}.restrictions"] = [sentence]
    if policy.requirement != NO_REQUIREMENT:
        sentence = "Leave it out: only the verifier can ask for it."
        errors[REVOCATION_REQUIREMENT] = [sentence]
    if errors:
        path, sentences = next(iter(errors.items()))
        message = f"The policy cannot be proposed: {path}: {sentences[0]}"
        raise Invalid("invalid_policy", message, errors)


def read_proposal(message: Message) -> tuple[Preview, Policy]:
    """Return (preview, policy) of a proposal.

    Raises PeerError if it cannot be read, or is not a valid policy.
    """
    if not format_of(message).is_first:
        request = REQUEST_DEFAULTS | attachment_of(message, PROOF_PROPOSAL)
        proposed = ProofRequest.parse(request).to_policy()
        policy = _normalise_proposed(proposed.to_json())
        return _preview_of(policy), policy
    preview = message.body.get("presentation_proposal")
    if not isinstance(preview, dict):
        raise PeerError("bad_proposal", "presentation_proposal is missing")
    attributes = _read_entries(preview, "attributes")
    predicates = _read_entries(preview, "predicates")
    body: dict[str, JSON] = {
        "name": str(message.body.get("comment") or DEFAULT_NAME)[:200],
        "version": DEFAULT_VERSION,
        "attributes": [*_attribute_items(attributes)],
        "predicates": [_predicate_item(entry) for entry in predicates],
    }
    entries: Preview = {"attributes": attributes, "predicates": predicates}
    return entries, _normalise_proposed(body)


def _normalise_proposed(body: dict[str, JSON]) -> Policy:
    """The proposed policy, by the same rules as any other policy."""
    try:
        return proof_policy.normalise(body)
    except Invalid as error:
        raise PeerError("bad_proposal", error.message) from None


def _read_entries(preview: dict[str, JSON], part: str) -> list[Entry]:
    entries = preview.get(part) or []
    if not isinstance(entries, list) or len(entries) > MAX_REFERENTS:
        raise PeerError(
            "bad_proposal", f"{part} is not a list of at most {MAX_REFERENTS} entries"
        )
    return [_read_entry(entry) for entry in entries]


def _read_entry(value: JSON) -> Entry:
    """Return the known members. Raise PeerError for texts that are too long."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise PeerError("bad_proposal", "an entry has no name")
    known = {"name", "predicate", *TEXT_NAMES.values()}
    entry: Entry = {
        name: text for name, text in value.items() if name in known and text is not None
    }
    for text in entry.values():
        if not isinstance(text, str) or len(text) > MAX_TEXT_LENGTH:
            raise PeerError("bad_proposal", "an entry has a member that is not a text")
    threshold = value.get("threshold")
    if threshold is not None:
        entry["threshold"] = threshold
    return entry


def _attribute_items(entries: list[Entry]) -> list[dict[str, JSON]]:
    """Return one item per referent, with the names of all its entries."""
    items: dict[str, dict[str, JSON]] = {}
    names: dict[str, list[JSON]] = {}
    for entry in entries:
        name = str(entry.get("referent") or entry["name"])
        of_item = names.setdefault(name, [])
        of_item.append(entry["name"])
        item = items.setdefault(name, {"policyName": name, "attributeNames": of_item})
        item |= _restrictions_member(entry)
    return list(items.values())


def _predicate_item(entry: Entry) -> dict[str, JSON]:
    """The policy item of an entry. A threshold that is no number fails in normalise."""
    if entry.get("predicate") not in PREDICATE_TYPES:
        raise PeerError("bad_proposal", "a predicate has a type that cannot be proven")
    return {
        "policyName": entry.get("referent") or f"{entry['name']} {entry['predicate']}",
        "attributeName": entry["name"],
        "predicateType": entry["predicate"],
        # A date relative to a day is our API's, and not in any message.
        "predicateValue": proof_policy.whole_number(entry.get("threshold")),
    } | _restrictions_member(entry)


def _restrictions_member(entry: Entry) -> dict[str, JSON]:
    restriction = {
        name: entry[wire_name]
        for name, wire_name in RESTRICTION_NAMES.items()
        if entry.get(wire_name)
    }
    return {"restrictions": [restriction]} if restriction else {}


def preview_for_api(preview: Preview) -> dict[str, JSON]:
    """The preview with the API's field names."""
    return {
        "proposedAttributes": [_entry_for_api(one) for one in preview["attributes"]],
        "proposedPredicates": [_entry_for_api(one) for one in preview["predicates"]],
    }


def _entry_for_api(entry: Entry) -> Entry:
    shown: Entry = {
        name: entry[name]
        for name in ("name", "predicate", "threshold")
        if name in entry
    }
    for name, wire_name in TEXT_NAMES.items():
        if wire_name in entry:
            shown[name] = entry[wire_name]
    return shown
