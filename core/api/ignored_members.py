"""Members of a body and query parameters that the operation does not know.

They are no error, as the original clients send members that the original service did
not know either. A response header names them, so that a caller finds a misspelt one.
Calls that cannot be undone refuse them: who writes `?dryrun=true` means no revocation.
"""

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from core.errors import Invalid
from core.text.bounded_json import JSON

MEMBERS_HEADER = "X-Ignored-Members"
PARAMETERS_HEADER = "X-Ignored-Parameters"
UNKNOWN = "Nothing of this name is read here."
MAX_NAMES = 20
MAX_NAME_LENGTH = 120


def header_value(names: Iterable[str]) -> str:
    """The names as `a, b[0].c`, percent-encoded where needed; `...` if there are more."""
    quoted = [quote(name[:MAX_NAME_LENGTH], safe="[]") for name in names if name]
    more = ["..."] if len(quoted) > MAX_NAMES else []
    return ", ".join(quoted[:MAX_NAMES] + more)


def unknown_members(
    field: serializers.Field | None, data: JSON, path: str = ""
) -> Iterator[str]:
    """The paths of unknown members of `data`, such as `attributes[0].nmae`.

    Null counts as absent. In a map with free names no member is unknown.
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
        aliases: dict[str, str] = getattr(field, "aliases", {})
        for name, item in data.items():
            here = f"{path}.{name}" if path else name
            known = field.fields.get(aliases.get(name, name))
            if known is not None:
                yield from unknown_members(known, item, here)
            elif item is not None:
                yield here


def parameter_names(
    parameters: Iterable[type[serializers.Serializer] | OpenApiParameter],
) -> list[str]:
    """The query parameters that an operation reads, from those of its documentation."""
    names = []
    for one in parameters:
        if not isinstance(one, OpenApiParameter):
            names += list(one().fields)
        elif one.location == OpenApiParameter.QUERY:
            names.append(one.name)
    return names


def refuse_parameters(given: QueryDict, known: Iterable[str]) -> None:
    """Raise 400 `invalid_request` if a parameter is unknown or comes twice."""
    reads = ", ".join(known) or "none"
    errors = {}
    for name, values in given.lists():
        if name not in known:
            errors[name] = [f"There is no such query parameter here, only: {reads}."]
        elif len(values) > 1:
            errors[name] = ["Give it once."]
    refuse(errors)


def refuse_members(names: Iterable[str]) -> None:
    """Raise 400 `invalid_request` if there are names of unknown members."""
    refuse(sentences(names))


def sentences(names: Iterable[str]) -> dict[str, list[str]]:
    """What the `errors` of a 400 say of names that no field reads."""
    return {name[:MAX_NAME_LENGTH]: [UNKNOWN] for name in list(names)[:MAX_NAMES]}


def refuse(errors: dict[str, list[str]]) -> None:
    """errors: sentences by name. None of them is repeated without end."""
    if errors:
        shown = {
            name[:MAX_NAME_LENGTH]: errors[name] for name in list(errors)[:MAX_NAMES]
        }
        text = " ".join(f"{name}: {' '.join(said)}" for name, said in shown.items())
        message = f"{text} Nothing was done."
        raise Invalid("invalid_request", message, shown)
