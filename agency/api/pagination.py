"""Lists: arrays in a stable order, page by page.

A page goes on where its cursor says: after the sort key and the id of the last row shown. Rows that
come meanwhile are neither repeated nor do they hide others. A row that changes while its list is
read by `updatedAt` moves in it, as it should.
"""

import uuid
from typing import Any, NamedTuple

from django.conf import settings
from django.db.models import BinaryField, F, Model, Q, QuerySet, Value
from django.db.models.functions import Collate, Lower
from django.utils.encoding import escape_uri_path
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from agency.api import hints
from agency.core.errors import Invalid
from tenants import vault

MAX_LIST = 1000
APART = 60_000  # milliseconds; an id and its row's `created_at` are never further apart
CREATED = {"createdAt": "pk"}  # ids are in the order of time
UPDATED = {"updatedAt": "updated_at"}
NAMED = {"name": "folded_name"}


def folded(column: str) -> Collate:
    """A name as lists sort and search it: without case, in an order that serves prefixes too."""
    return Collate(Lower(column), "C")


class PrefixField(serializers.CharField):
    """The beginning of a name, in any case."""

    def __init__(self, **options: Any):
        super().__init__(max_length=200, required=False, **options)

    def run_validation(self, data: Any = serializers.empty) -> Lower:
        return Lower(Value(super().run_validation(data)))


class ListQuery(serializers.Serializer):
    """The query parameters of a list. The `source` of a filter is the lookup that it sets."""

    sorts = CREATED
    named: str | None = None  # the column that is searched and sorted as `folded_name`

    limit = serializers.IntegerField(default=MAX_LIST, min_value=1, max_value=MAX_LIST)
    cursor = serializers.CharField(
        required=False,
        max_length=2000,
        help_text="Where to go on: from `Link`, with its `sort`.",
    )
    createdAfter = serializers.DateTimeField(source="created_at__gt", required=False)
    createdBefore = serializers.DateTimeField(source="created_at__lt", required=False)

    def get_fields(self) -> dict[str, serializers.Field]:
        names = [sign + name for name in self.sorts for sign in ("-", "")]
        wrong = {"invalid_choice": f"Choose from {', '.join(names)}."}
        sort = serializers.ChoiceField(
            names, default="-createdAt", error_messages=wrong
        )
        fields = super().get_fields() | {"sort": sort}
        hints.explain(fields.values(), hints.OF_ADDRESSES)
        return fields

    def validate(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Times of creation bound the ids too, which have the index."""
        if after := wanted.get("created_at__gt"):
            wanted["pk__gte"] = first_id(milliseconds(after) - APART)
        if before := wanted.get("created_at__lt"):
            wanted["pk__lt"] = first_id(milliseconds(before) + APART)
        return wanted


class ChangingQuery(ListQuery):
    """Of records that change after they were made."""

    sorts = CREATED | UPDATED
    updatedAfter = serializers.DateTimeField(source="updated_at__gt", required=False)


class NamedQuery(ListQuery):
    """Of records with a name."""

    sorts = CREATED | NAMED
    named = "name"
    name = PrefixField(
        source="folded_name__startswith", help_text="Its beginning, in any case."
    )


def milliseconds(moment: Any) -> int:
    return int(moment.timestamp() * 1000)


def first_id(moment: int) -> uuid.UUID:
    """The smallest UUIDv7 of a moment (milliseconds since 1970)."""
    return uuid.UUID(int=min(max(moment, 0), 2**48 - 1) << 80)


class Page(NamedTuple):
    rows: list[Model]
    cursor: str | None  # of the next page, if there is one


def page(rows: QuerySet, query: ListQuery) -> Page:
    """What a valid query asks for of these rows. Invalid `invalid_cursor`."""
    lookups = dict(query.validated_data)
    limit, sort = lookups.pop("limit"), lookups.pop("sort")
    purpose, cursor = (
        f"cursor|{type(query).__name__}|{sort}",
        lookups.pop("cursor", None),
    )
    sign, name = ("-", sort[1:]) if sort.startswith("-") else ("", sort)
    if query.named:
        rows = rows.alias(folded_name=folded(query.named))
    rows = rows.filter(**lookups).annotate(sort_key=F(query.sorts[name]))
    if cursor:
        rows = rows.filter(beyond(position(cursor, purpose), "lt" if sign else "gt"))
    found = list(rows.order_by(f"{sign}sort_key", f"{sign}pk")[: limit + 1])
    shown, more = found[:limit], len(found) > limit
    return Page(shown, cursor_after(shown[-1], purpose) if more else None)


def beyond(last: tuple[str, str], direction: str) -> Q:
    """After a row in the order (sort_key, pk); the first condition is what the index serves."""
    key, pk = last
    tie = Q(**{f"sort_key__{direction}": key}) | Q(**{f"pk__{direction}": pk})
    return Q(**{f"sort_key__{direction}e": key}) & tie


def cursor_after(row: Any, purpose: str) -> str:
    """Sealed, as a sort key may be a name, and cursors stand in URLs."""
    return vault.seal_text([str(row.sort_key), str(row.pk)], purpose)


def position(cursor: str, purpose: str) -> tuple[str, str]:
    found = vault.unseal_text(cursor, purpose)
    if found is None:
        message = (
            "The cursor is not one of this list in this order. Follow the Link header."
        )
        raise Invalid("invalid_cursor", message, {"cursor": [message]})
    return found[0], found[1]


def narrowed(rows: QuerySet, columns: tuple[str, ...]) -> QuerySet:
    """Rows with these columns of theirs and of what is joined; without any, all but the sealed."""
    if columns:
        return rows.only(*columns)
    return rows.defer(*sealed_columns(rows.model, rows.query.select_related or {}))


def sealed_columns(model: type[Model], joined: dict) -> list[str]:
    """joined: as `select_related` keeps it, `{field: {field of that model: {}}}`."""
    names = [
        field.name for field in model._meta.fields if isinstance(field, BinaryField)
    ]
    for name, inner in joined.items():
        related = model._meta.get_field(name).related_model
        names += [f"{name}__{column}" for column in sealed_columns(related, inner)]
    return names


def next_link(request: Any, cursor: str, name: str = "cursor") -> str:
    """RFC 8288: this request with another cursor, below the address that everybody knows us by."""
    parameters = request.GET.copy()
    parameters[name] = cursor
    path = escape_uri_path(request.path_info)
    return f'<{settings.PUBLIC_URL}{path}?{parameters.urlencode()}>; rel="next"'


LINK = OpenApiParameter(
    "Link",
    str,
    OpenApiParameter.HEADER,
    response=[200],
    description='`<URL>; rel="next"`: where the list goes on (RFC 8288). Absent at its end.',
)


def parameters(query: type[ListQuery]) -> list[Any]:
    """For the documentation of a list."""
    return [query, LINK]
