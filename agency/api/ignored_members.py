"""Members of a body and query parameters that no operation reads, because they are misspelt.

They are no error, as the original clients send members that their version of the service did not
know either. A response header names them, so that a caller finds the mistake.
"""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from rest_framework import serializers

MEMBERS = "X-Ignored-Members"
PARAMETERS = "X-Ignored-Parameters"
MAX_NAMES = 20
MAX_NAME_LENGTH = 120


def header_of(names: Iterable[str]) -> str:
    """`a, b[0].c`: percent-encoded where a header cannot hold the character; `...` for more."""
    written = [quote(name[:MAX_NAME_LENGTH], safe="[]") for name in names if name]
    return ", ".join(written[:MAX_NAMES] + (["..."] if written[MAX_NAMES:] else []))


def unknown_members(
    field: serializers.Field, data: Any, path: str = ""
) -> Iterator[str]:
    """The paths of the members of `data` that the field does not know, as `attributes[0].nmae`.

    Null counts as absent. A map with free names has none that is unknown.
    """
    if isinstance(field, serializers.ListSerializer | serializers.ListField):
        if isinstance(data, list):
            for index, item in enumerate(data):
                yield from unknown_members(field.child, item, f"{path}[{index}]")
    elif isinstance(field, serializers.DictField):
        if isinstance(data, dict):
            for name, item in data.items():
                yield from unknown_members(field.child, item, f"{path}.{name}")
    elif (
        isinstance(field, serializers.Serializer)
        and field.fields
        and isinstance(data, dict)
    ):
        aliases = getattr(field, "aliases", {})
        for name, item in data.items():
            here = f"{path}.{name}" if path else name
            known = field.fields.get(aliases.get(name, name))
            if known is not None:
                yield from unknown_members(known, item, here)
            elif item is not None:
                yield here
