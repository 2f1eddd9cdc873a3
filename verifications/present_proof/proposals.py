"""What a prover offers to show (RFCs 0037, 0454): from a policy, to one, and shown.

In 1.0 it is a preview, in 2.0 a whole request. A preview knows no alternatives and no `==`, and
restricts by definition, schema and issuer only.
"""

from typing import Any

from agency.core.errors import Invalid, PeerError
from connections.didcomm.formats import PROOF_PROPOSAL, enclosed, wire_of
from connections.didcomm.message import Message
from verifications.proofs import proof_policy
from verifications.proofs.proof_items import MAX_REFERENTS, PREDICATE_TYPES
from verifications.proofs.request_reading import policy_from_request

RESTRICTION = {
    "credentialDefinitionId": "cred_def_id",
    "schemaId": "schema_id",
    "issuerDid": "issuer_did",
}
SHOWN = {
    "mimeType": "mime-type",
    "value": "value",
    "referent": "referent",
    **RESTRICTION,
}
NAME, VERSION = "Proposal", "1.0"
MAY_LACK = {
    "name": NAME,
    "version": VERSION,
    "nonce": "1",
}  # the nonce is the verifier's to choose
MAX_TEXT = 10_000


def build(policy: dict) -> dict:
    """The preview of a (normalised) policy. 400 `invalid_policy` for what a preview cannot say."""
    _check_sayable(policy)
    return _preview(policy)


def _preview(policy: dict) -> dict:
    attributes = [
        {"name": name, "referent": item["policyName"]} | _wire_restriction(item)
        for item in policy["attributes"]
        for name in item["attributeNames"]
    ]
    return {
        "attributes": attributes,
        "predicates": list(map(_wire, policy["predicates"])),
    }


def _wire(item: dict) -> dict:
    return {
        "name": item["attributeName"],
        "referent": item["policyName"],
        "predicate": item["predicateType"],
        "threshold": item["predicateValue"],
    } | _wire_restriction(item)


def _wire_restriction(item: dict) -> dict:
    restriction: dict = next(iter(item.get("restrictions", [])), {})
    return {
        RESTRICTION[name]: text
        for name, text in restriction.items()
        if name in RESTRICTION
    }


def _check_sayable(policy: dict) -> None:
    errors: dict[str, list[str]] = {}
    for part in ("attributes", "predicates"):
        for index, item in enumerate(policy[part]):
            path = f"{part}[{index}]"
            if item.get("predicateType") == "==":
                errors[f"{path}.predicateType"] = [
                    "A proposal compares with >=, >, <= or <."
                ]
            if "allowText" in item:
                errors[f"{path}.allowText"] = [
                    "A proposal cannot say it; the verifier does."
                ]
            restrictions = item.get("restrictions", [])
            if len(restrictions) > 1 or any(
                set(one) - set(RESTRICTION) for one in restrictions
            ):
                names = ", ".join(RESTRICTION)
                errors[f"{path}.restrictions"] = [
                    f"A proposal has one at most, of {names}."
                ]
    if "revocationRequirement" in policy:
        errors["revocationRequirement"] = [
            "A proposal cannot ask for it; the verifier does."
        ]
    if errors:
        path, sentences = next(iter(errors.items()))
        message = f"The policy cannot be proposed: {path}: {sentences[0]}"
        raise Invalid("invalid_policy", message, errors)


def read(message: Message) -> tuple[dict, dict]:
    """(preview, policy) of a received proposal. PeerError if it cannot be read or asked for."""
    if wire_of(message).version != "1.0":
        policy = _as_stored(
            policy_from_request(MAY_LACK | enclosed(message, PROOF_PROPOSAL))
        )
        return _preview(policy), policy
    preview = message.body.get("presentation_proposal")
    if not isinstance(preview, dict):
        raise PeerError("bad_proposal", "presentation_proposal is missing")
    attributes, predicates = (
        _entries(preview, part) for part in ("attributes", "predicates")
    )
    policy = {
        "name": str(message.body.get("comment") or NAME)[:200],
        "version": VERSION,
        "attributes": _attributes(attributes),
        "predicates": [_predicate(entry) for entry in predicates],
    }
    return {"attributes": attributes, "predicates": predicates}, _as_stored(policy)


def _as_stored(policy: dict) -> dict:
    """Normalised: what is proposed keeps to the rules of any policy that is asked for here."""
    try:
        return proof_policy.normalise(policy)
    except Invalid as error:
        raise PeerError("bad_proposal", error.message) from None


def _entries(preview: dict, part: str) -> list[dict]:
    listed = preview.get(part) or []
    if not isinstance(listed, list) or len(listed) > MAX_REFERENTS:
        raise PeerError("bad_proposal", f"{part} is no list that can be read")
    return [_entry(one) for one in listed]


def _entry(value: Any) -> dict:
    """The members that are known, with texts of a bounded length."""
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise PeerError("bad_proposal", "an entry has no name")
    known = {"name", "predicate", *SHOWN.values()}
    entry = {
        name: text for name, text in value.items() if name in known and text is not None
    }
    if not all(
        isinstance(text, str) and len(text) <= MAX_TEXT for text in entry.values()
    ):
        raise PeerError("bad_proposal", "an entry has a member that is no text")
    threshold = value.get("threshold")
    return entry if threshold is None else entry | {"threshold": threshold}


def _attributes(entries: list[dict]) -> list[dict]:
    """One item for each referent, with the names of all its entries."""
    items: dict[str, dict] = {}
    for entry in entries:
        name = entry.get("referent") or entry["name"]
        item = items.setdefault(name, {"policyName": name, "attributeNames": []})
        item["attributeNames"].append(entry["name"])
        item |= _restrictions(entry)
    return list(items.values())


def _predicate(entry: dict) -> dict:
    if entry.get("predicate") not in PREDICATE_TYPES:
        raise PeerError("bad_proposal", "a predicate is none that can be proven")
    return {
        "policyName": entry.get("referent") or f"{entry['name']} {entry['predicate']}",
        "attributeName": entry["name"],
        "predicateType": entry["predicate"],
        "predicateValue": entry.get("threshold"),
    } | _restrictions(entry)


def _restrictions(entry: dict) -> dict:
    found = {name: entry[wire] for name, wire in RESTRICTION.items() if entry.get(wire)}
    return {"restrictions": [found]} if found else {}


def shown(preview: dict) -> dict:
    """The preview with the API's field names."""
    return {
        "proposedAttributes": [_shown(entry) for entry in preview["attributes"]],
        "proposedPredicates": [_shown(entry) for entry in preview["predicates"]],
    }


def _shown(entry: dict) -> dict:
    same = {
        name: entry[name]
        for name in ("name", "predicate", "threshold")
        if name in entry
    }
    return same | {name: entry[wire] for name, wire in SHOWN.items() if wire in entry}
