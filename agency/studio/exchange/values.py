"""What an exchange is about: names and conditions; its values only when revealed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from agency.holder_pages.contents import predicate_of, value_words
from agency.studio.exchange.api_answer import MASK
from credentials.models import Credential
from verifications.models import Verification
from verifications.proofs.request_reading import read_items


@dataclass(frozen=True)
class Value:
    """An attribute of a credential or of a proof.

    item: of the policy, "" for a credential. text: MASK, or the value as people read
    it; "" if there is none. condition: of a comparison, which has no value, in words.
    """

    item: str
    name: str
    text: str = ""
    condition: str = ""


def masked_values(row: Any) -> list[Value]:
    """All names, with masks in place of values."""
    return [
        Value(one.item, one.name, MASK if one.text else "", one.condition)
        for one in revealed_values(row)
    ]


def revealed_values(row: Any) -> list[Value]:
    """All names with their values. The caller records who reads them, and why."""
    if isinstance(row, Credential):
        return list(values_of_credential(row))
    if isinstance(row, Verification):
        return list(values_of_verification(row))
    return []


def values_of_credential(row: Credential) -> Iterator[Value]:
    values = row.unsealed_values()
    if values is None:
        values = dict.fromkeys(row.attribute_names, "")
    for name, text in values.items():
        yield Value("", name, value_words(name, text))


def values_of_verification(row: Verification) -> Iterator[Value]:
    """Yield what is asked, with the values of the proof if there is one.

    A comparison has a condition and no value. Nothing before there is a request.
    """
    if row.request_body is None:
        return
    proof = row.unsealed_proof() or {}
    for item in read_items(row.require_proof_request()):
        if item.is_predicate:
            predicate = predicate_of(item)
            name, condition = predicate.attribute, predicate.condition
            yield Value(item.policy_name, name, "", condition)
        else:
            shown = proof.get(item.policy_name, {}).get("attributes", {})
            for name in item.attribute_names:
                text = value_words(name, shown.get(name, ""))
                yield Value(item.policy_name, name, text)
