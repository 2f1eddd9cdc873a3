"""Lists: arrays in a stable order, page by page.

A cursor holds the sort key and the id of the last row of a page. So rows that are
created between two pages neither repeat nor hide others. A row that changes while its
list is read by `updatedAt` moves in the list, as it should.
"""

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, Unpack

from django.conf import settings
from django.db.models import BinaryField, F, Model, Q, QuerySet, Value
from django.db.models.functions import Lower
from django.http import HttpRequest
from django.utils.encoding import escape_uri_path
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from core.api import hints
from core.api.serializers import IntegerField, SharedFields, TextOptions
from core.database.collation import case_insensitive
from core.database.uuids import smallest_uuid7, unix_milliseconds
from core.errors import Invalid
from tenants import vault

MAX_LIMIT = 1000
MAX_CURSOR = 2000  # characters
MAX_CLOCK_SKEW = 60_000  # milliseconds between the time in an id and `created_at`
BY_CREATION = {"createdAt": "pk"}  # ids are in the order of time
BY_UPDATE = {"updatedAt": "updated_at"}
BY_NAME = {"name": "folded_name"}

# What select_related() joins: `{field: {field of that model: {}}}`.
Joined: TypeAlias = "Mapping[str, Joined]"


class PrefixField(serializers.CharField):
    """The beginning of a name, in any case."""

    def __init__(self, **options: Unpack[TextOptions]):
        super().__init__(max_length=200, **options)

    def run_validation(self, data: Any = serializers.empty) -> Lower:
        return Lower(Value(super().run_validation(data)))


class ListQuery(SharedFields):
    """The query parameters of a list. The `source` of a filter is its lookup."""

    messages = hints.QUERY_MESSAGES
    sorts = BY_CREATION
    named: str | None = None  # the column behind `folded_name`, for lists by name

    limit = IntegerField(default=MAX_LIMIT, min_value=1, max_value=MAX_LIMIT)
    cursor = serializers.CharField(
        required=False,
        max_length=MAX_CURSOR,
        help_text="Where to go on: from `Link`, with its `sort`.",
    )
    createdAfter = serializers.DateTimeField(source="created_at__gt", required=False)
    createdBefore = serializers.DateTimeField(source="created_at__lt", required=False)

    def get_fields(self) -> dict[str, serializers.Field]:
        names = [sign + name for name in self.sorts for sign in ("-", "")]
        sort = serializers.ChoiceField(
            names,
            default="-createdAt",
            error_messages={"invalid_choice": f"Choose from {', '.join(names)}."},
        )
        return super().get_fields() | {"sort": sort}

    @property
    def is_unfiltered_first_page(self) -> bool:
        """Whether the newest rows are asked for, without a condition."""
        return self.validated_data == {"limit": MAX_LIMIT, "sort": "-createdAt"}

    def validate(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """Bounds on the time of creation bound the ids too, which have the index."""
        if after := wanted.get("created_at__gt"):
            wanted["pk__gte"] = smallest_uuid7(
                unix_milliseconds(after) - MAX_CLOCK_SKEW
            )
        if before := wanted.get("created_at__lt"):
            wanted["pk__lt"] = smallest_uuid7(
                unix_milliseconds(before) + MAX_CLOCK_SKEW
            )
        return wanted


class ChangingQuery(ListQuery):
    """The query parameters of a list of records that change after their creation."""

    sorts = BY_CREATION | BY_UPDATE
    updatedAfter = serializers.DateTimeField(source="updated_at__gt", required=False)


class NamedQuery(ListQuery):
    """The query parameters of a list of records with a name."""

    sorts = BY_CREATION | BY_NAME
    named = "name"
    name = PrefixField(
        source="folded_name__startswith",
        required=False,
        help_text="Its beginning, in any case.",
    )


Row = TypeVar("Row", bound=Model)


class Page(NamedTuple, Generic[Row]):
    rows: list[Row]
    cursor: str | None  # of the next page, if there is one


class TwoWayPage(NamedTuple, Generic[Row]):
    """previous, next: the cursors of the pages before and after this one, if any."""

    rows: list[Row]
    previous: str | None
    next: str | None


def paginate(rows: QuerySet[Row], query: ListQuery) -> Page[Row]:
    """The page of `rows` that a valid query asks for. 400 `invalid_cursor`."""
    return cut_page(list(select_page(rows, query)), query)


def cut_page(found: list[Row], query: ListQuery) -> Page[Row]:
    """The page of what select_page() found."""
    limit = query.validated_data["limit"]
    has_more = len(found) > limit
    cursor = seal_cursor(found[limit - 1], cursor_purpose(query)) if has_more else None
    return Page(found[:limit], cursor)


def paginate_both_ways(
    rows: QuerySet[Row], query: ListQuery, is_backwards: bool = False
) -> TwoWayPage[Row]:
    """The page of `rows` after the query's cursor, or the page before it.

    is_backwards: the cursor is that of the page before, as `previous` has it.
    """
    limit = query.validated_data["limit"]
    found = list(select_page(rows, query, is_backwards))
    found, has_more = found[:limit], len(found) > limit
    came_from = "cursor" in query.validated_data
    has_previous, has_next = came_from, has_more
    if is_backwards:
        found.reverse()
        has_previous, has_next = has_more, came_from
    purpose = cursor_purpose(query)
    previous = seal_cursor(found[0], purpose) if found and has_previous else None
    following = seal_cursor(found[-1], purpose) if found and has_next else None
    return TwoWayPage(found, previous, following)


def cursor_purpose(query: ListQuery) -> str:
    """A cursor fits its own list and sort order only."""
    return f"cursor|{type(query).__name__}|{query.validated_data['sort']}"


def select_page(
    rows: QuerySet[Row], query: ListQuery, is_backwards: bool = False
) -> QuerySet[Row]:
    """The rows of a page, and one more if there are more. Reads nothing yet.

    They come after the cursor in the order of the sort key, then of the id. query:
    valid; its other members are lookups. is_backwards: the rows before the cursor, from
    the nearest one on. 400 `invalid_cursor` for the cursor of another list.
    """
    lookups = dict(query.validated_data)
    limit = lookups.pop("limit")
    sort = lookups.pop("sort")
    cursor = lookups.pop("cursor", None)
    is_descending = sort.startswith("-") != is_backwards
    sign = "-" if is_descending else ""
    if query.named:
        name = case_insensitive(query.named)
        rows = rows.alias(folded_name=name)  # type: ignore[assignment]
    sort_key = query.sorts[sort.removeprefix("-")]
    rows = rows.filter(**lookups)
    rows = rows.annotate(sort_key=F(sort_key))  # type: ignore[assignment]
    if cursor:
        last = vault.unseal_text(cursor, cursor_purpose(query))
        if last is None:
            message = (
                "This cursor belongs to another list or sort order. Follow the Link "
                "header."
            )
            raise Invalid("invalid_cursor", message, {"cursor": [message]})
        key, pk = last
        to = "lt" if is_descending else "gt"
        behind = Q(**{f"sort_key__{to}": key}) | Q(**{f"pk__{to}": pk})
        # The first condition is redundant, but it is the one that the index serves.
        rows = rows.filter(Q(**{f"sort_key__{to}e": key}) & behind)
    return rows.order_by(f"{sign}sort_key", f"{sign}pk")[: limit + 1]


def seal_cursor(row: Model, purpose: str) -> str:
    """A cursor is sealed, as its sort key may be a name, and URLs are logged."""
    key = row.sort_key  # type: ignore[attr-defined]  # of select_page()
    return vault.seal_text([str(key), str(row.pk)], purpose)


def only_columns(rows: QuerySet[Row], columns: tuple[str, ...]) -> QuerySet[Row]:
    """Return the rows with these columns only; without any, all but sealed ones.

    columns: of the rows and of those joined by select_related(). One that is left out
    is read by a query of its own when it is used.
    """
    if columns:
        return rows.only(*columns)
    joined = rows.query.select_related
    names = sealed_columns(rows.model, joined if isinstance(joined, dict) else {})
    return rows.defer(*names)


def sealed_columns(model: type[Model], joined: Joined) -> list[str]:
    names = [
        field.name for field in model._meta.fields if isinstance(field, BinaryField)
    ]
    for name, inner in joined.items():
        related = model._meta.get_field(name).related_model
        assert isinstance(related, type), "the join has a model"
        names += [f"{name}__{column}" for column in sealed_columns(related, inner)]
    return names


def next_link(request: HttpRequest, cursor: str, name: str = "cursor") -> str:
    """Return a Link header (RFC 8288): this request with another cursor.

    The address is below PUBLIC_URL. name: of the query parameter of the cursor.
    """
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


def list_parameters(
    query: type[ListQuery],
) -> list[type[ListQuery] | OpenApiParameter]:
    return [query, LINK]
