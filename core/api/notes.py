"""Reference and metadata of objects, in bodies, answers and lists."""

import unicodedata
from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, Unpack

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.exceptions import flatten_errors
from core.api.pagination import ListQuery
from core.api.serializers import METADATA, Contract, FieldOptions, Parameters
from core.errors import Invalid
from core.text.bounded_json import JSON
from tenants.models import NotedRow, Notes
from tenants.models.notes import MAX_PAIRS, MAX_REFERENCE, merge_pairs

Noted = TypeVar("Noted", bound=NotedRow)
MAX_KEY = 40
MAX_TEXT = 500
BY_REFERENCE = {"reference": "reference"}
REFERENCE = (
    "Your own name of the object, such as the number of an order. It is stored in clear "
    "text, and events have it: no place for personal data."
)
PAIRS = (
    "Your own pairs of texts, stored encrypted. No list is filtered by them, and no "
    "other party sees them."
)


class LineField(serializers.CharField):
    """A text without control characters and breaks of lines."""

    default_error_messages = {
        "control": "Leave out control characters and breaks of lines."
    }

    def to_internal_value(self, data: str) -> str:
        text = super().to_internal_value(data)
        if any(unicodedata.category(one) in ("Cc", "Zl", "Zp") for one in text):
            self.fail("control")
        return text


@extend_schema_field(
    {
        "type": "object",
        "maxProperties": MAX_PAIRS,
        "propertyNames": {"minLength": 1, "maxLength": MAX_KEY},
        "additionalProperties": {
            "type": ["string", "null"],
            "minLength": 1,
            "maxLength": MAX_TEXT,
        },
        "example": {"order": "4711"},
    }
)
class MetadataField(serializers.DictField):
    """Pairs to set; a pair whose text is null is removed."""

    default_error_messages = {
        "key": f"Give each key 1 to {MAX_KEY} printable characters."
    }

    def __init__(self, **options: Unpack[FieldOptions]) -> None:
        text = LineField(max_length=MAX_TEXT, trim_whitespace=False, allow_null=True)
        super().__init__(child=text, **options)

    def to_internal_value(self, data: dict[str, JSON]) -> dict[str, str | None]:
        if isinstance(data, dict) and not all(
            1 <= len(name) <= MAX_KEY and name.isprintable() for name in data
        ):
            self.fail("key")
        return super().to_internal_value(data)


class NotesParameters(Parameters):
    """Notes of a new object, or changes of notes: what is left out stays."""

    reference = LineField(
        required=False,
        allow_null=True,
        allow_blank=True,
        max_length=MAX_REFERENCE,
        help_text=f"{REFERENCE} Null clears it.",
    )
    metadata = MetadataField(
        required=False,
        allow_null=True,
        help_text=f"{PAIRS} A pair whose text is null is removed, and other pairs "
        "stay; null instead of the object removes all.",
    )


def check_notes(members: Mapping[str, Any]) -> tuple[Notes, dict[str, list[str]]]:
    """The valid notes of a new object, and what is wrong with others.

    That by member, without keys of the metadata. For very many objects: no serializer
    is made for each.
    """
    valid: dict[str, Any] = {}
    wrong: dict[str, list[str]] = {}
    for name, given in members.items():
        try:
            valid[name] = note_fields()[name].run_validation(given)
            if name == METADATA:
                merge_pairs({}, valid[name])
        except serializers.ValidationError as error:
            found = flatten_errors(error.detail)
            wrong[name] = [text for texts in found.values() for text in texts]
        except Invalid as error:
            wrong[name] = [error.message]
    return notes_in({one: valid[one] for one in valid.keys() - wrong.keys()}), wrong


@cache
def note_fields() -> dict[str, serializers.Field]:
    return dict(NotesParameters().fields)


def notes_in(body: Mapping[str, Any]) -> Notes:
    """The notes in a valid body that may have other members too."""
    notes: Notes = {}
    if "reference" in body:
        notes["reference"] = body["reference"]
    if "metadata" in body:
        notes["metadata"] = body["metadata"]
    return notes


class NotesContract(Contract[Noted]):
    """A response with the notes of a NotedRow."""

    value_members: tuple[str, ...] = (METADATA,)
    sealed_members: tuple[str, ...] = (METADATA,)
    last_members = ("reference", METADATA)

    reference = serializers.CharField(required=False, help_text=REFERENCE)
    metadata = serializers.DictField(
        child=serializers.CharField(), required=False, help_text=PAIRS
    )


class NotesQuery(ListQuery):
    """The query parameters of a list of objects with notes. Its `sorts` has BY_REFERENCE."""

    reference = serializers.CharField(
        required=False,
        max_length=MAX_REFERENCE,
        help_text="Only those with exactly this reference.",
    )
