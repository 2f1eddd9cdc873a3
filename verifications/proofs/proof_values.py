"""The `proof` of a verification: what a presentation shows for each policy item."""

from collections.abc import Container, Iterable
from typing import Required, TypedDict

from verifications.proofs.presentation_reading import (
    SINGLE_VALUE,
    Answer,
    Presentation,
)
from verifications.proofs.proof_items import Item

ANONCREDS = "anoncreds"  # a format of credentials


class ProofEntry(TypedDict, total=False):
    """What a presentation shows for an item, with the API's field names.

    value: of an item that asks for one attribute, or for a comparison ("true" or
    "false"). attributes: of one that asks for several.
    """

    name: str
    value: str
    attributes: dict[str, str]
    revealed: Required[bool]
    selfAttested: Required[bool]
    conditional: Required[bool]
    format: Required[str]
    credentialDefinitionId: str


Proof = dict[str, ProofEntry]  # by the name of the policy item


def proof_by_item(
    items: Iterable[Item],
    presentation: Presentation,
    is_valid: bool,
    with_definition: Container[str] = (),
) -> Proof:
    """The `proof` by the name of the policy item.

    is_valid: else no predicate counts as proven. with_definition: names of items whose
    entry says of which definition the credential is.
    """
    proof: Proof = {}
    for item in items:
        answers = own_answers(presentation, item)
        entry = proof_entry(item, answers, is_valid)
        if item.policy_name in with_definition and (
            definition_id := _definition_id(answers, presentation)
        ):
            entry["credentialDefinitionId"] = definition_id
        proof[item.policy_name] = entry
    return proof


def _definition_id(answers: list[Answer], presentation: Presentation) -> str | None:
    """The definition of the credential that answers, unless there are several."""
    indexes = {answer.index for answer in answers}
    if len(indexes) != 1:
        return None
    [index] = indexes
    identifiers = presentation.identifiers
    if index is None or index >= len(identifiers):
        return None
    return identifiers[index].definition_id


def own_answers(presentation: Presentation, item: Item) -> list[Answer]:
    """The answers to the referents of the item itself, without its companions."""
    part = presentation.predicates if item.is_predicate else presentation.attributes
    return [answer for name in item.referents for answer in part.get(name, [])]


def proof_entry(
    item: Item, answers: list[Answer], is_valid: bool, kind: str = ANONCREDS
) -> ProofEntry:
    """The item's entry in `proof`. answers: to its own referents.

    It has no values unless there are as many answers as referents. kind: the format of
    the credentials that are asked for.
    """
    answer = answers[0] if len(answers) == len(item.referents) else None
    name = next(iter(item.attribute_names), "")  # none if nothing is asked for by name
    flags: ProofEntry = {
        "revealed": False,
        "selfAttested": False,
        "conditional": item.is_predicate,
        "format": kind,
    }
    if item.is_predicate:
        value = "true" if answer and is_valid else "false"
        return {"name": name, "value": value, **flags}
    values = answer.values if answer else {}
    texts = {one: values[one].raw for one in item.attribute_names if one in values}
    if SINGLE_VALUE in values:
        texts[name] = values[SINGLE_VALUE].raw
    flags["selfAttested"] = answer is not None and answer.index is None
    flags["revealed"] = bool(texts) and not flags["selfAttested"]
    if len(item.attribute_names) != 1:
        return {"attributes": texts, **flags} if texts else flags
    if name not in texts:
        return {"name": name, **flags}
    return {"name": name, "value": texts[name], **flags}
