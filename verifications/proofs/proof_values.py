"""The `proof` of a verification: what a presentation shows for each policy item."""

from collections.abc import Container, Iterable

from verifications.proofs.policy import DEFINITION
from verifications.proofs.presentation_reading import (
    SINGLE_VALUE,
    Answer,
    Presentation,
)
from verifications.proofs.proof_items import Item

ANONCREDS = "anoncreds"  # a format of credentials


def proof_by_item(
    items: Iterable[Item],
    presentation: Presentation,
    is_valid: bool,
    with_definition: Container[str] = (),
) -> dict[str, dict]:
    """The `proof` by the name of the policy item.

    is_valid: else no predicate counts as proven. with_definition: names of items whose
    entry says of which definition the credential is.
    """
    proof = {}
    for item in items:
        answers = own_answers(presentation, item)
        entry = proof_entry(item, answers, is_valid)
        if item.policy_name in with_definition:
            entry |= _definition_member(answers, presentation)
        proof[item.policy_name] = entry
    return proof


def _definition_member(answers: list[Answer], presentation: Presentation) -> dict:
    """The definition of the credential that answers, unless there are several."""
    indexes = {answer.index for answer in answers}
    if len(indexes) != 1:
        return {}
    [index] = indexes
    identifiers = presentation.identifiers
    if index is None or index >= len(identifiers):
        return {}
    return {DEFINITION: identifiers[index].definition_id}


def own_answers(presentation: Presentation, item: Item) -> list[Answer]:
    """The answers to the referents of the item itself, without its companions."""
    part = presentation.predicates if item.is_predicate else presentation.attributes
    return [answer for name in item.referents for answer in part.get(name, [])]


def proof_entry(
    item: Item, answers: list[Answer], is_valid: bool, kind: str = ANONCREDS
) -> dict:
    """The item's entry in `proof`. answers: to its own referents.

    It has no values unless there are as many answers as referents. kind: the format of
    the credentials that are asked for.
    """
    answer = answers[0] if len(answers) == len(item.referents) else None
    name = next(iter(item.attribute_names), "")  # none if nothing is asked for by name
    flags = {
        "revealed": False,
        "selfAttested": False,
        "conditional": item.is_predicate,
        "format": kind,
    }
    if item.is_predicate:
        value = "true" if answer and is_valid else "false"
        return {"name": name, "value": value} | flags
    values = answer.values if answer else {}
    texts = {one: values[one].raw for one in item.attribute_names if one in values}
    if SINGLE_VALUE in values:
        texts[name] = values[SINGLE_VALUE].raw
    flags["selfAttested"] = answer is not None and answer.index is None
    flags["revealed"] = bool(texts) and not flags["selfAttested"]
    entry: dict = {}
    if len(item.attribute_names) == 1:
        entry["name"] = name
        if name in texts:
            entry["value"] = texts[name]
    elif texts:
        entry["attributes"] = texts
    return entry | flags
