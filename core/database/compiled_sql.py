"""SQL that Django builds once: hot statements are executed with new parameters only.

Building the SQL of a query takes Django longer than PostgreSQL takes to execute it. A
CompiledQuery keeps what Django's own compiler has made of a queryset; `insert_row` and
`update_rows` keep theirs by model and columns. The results are those of the ORM:
tests/core/test_compiled_sql.py compares each of them.

A Row is made of what a statement returns without Django's constructor.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, lru_cache
from typing import Any, Generic, Self, TypeVar
from uuid import UUID

from django.db import IntegrityError, connection, models, transaction
from django.db.models.base import ModelState
from django.db.models.query import get_related_populators
from psycopg import Binary
from psycopg.rows import TupleRow
from psycopg.sql import Literal
from psycopg.types.json import Jsonb

from core.database import shortcuts
from core.database.base import count_rows, fetch_rows
from core.database.columns import ColumnValue

Found = TypeVar("Found", bound=models.Model)
ALIAS = "default"
# Values that need no conversion, by the kind of field.
PLAIN_TYPES = {
    "UUIDField": UUID,
    "ForeignKey": UUID,
    "CharField": str,
    "TextField": str,
    "BooleanField": bool,
    "BinaryField": bytes,
}


class Row(models.Model):
    """A model whose rows are read often."""

    class Meta:
        abstract = True

    @classmethod
    def from_db(  # type: ignore[override]  # the stubs are of a later Django
        cls, db: str | None, field_names: Iterable[str], values: Iterable[Any]
    ) -> Self:
        """Like Django's, without its constructor, which costs more than the rest.

        What is not among the names is not in `__dict__`, so it is deferred.
        """
        if not shortcuts.are_used:
            return super().from_db(db, list(field_names), list(values))
        row = cls.__new__(cls)
        row.__dict__.update(zip(field_names, values, strict=True))
        row._state = ModelState()
        row._state.adding, row._state.db = False, db
        return row


class CompiledQuery(Generic[Found]):
    """A queryset with parameters, without prefetch_related(), such as

    `CompiledQuery(lambda pk: Key.objects.filter(pk=pk), UUID)`

    build: returns the queryset for the parameters. types: of the parameters, UUID,
    str, bytes, a list of texts, or dict for the JSON object of a condition. A parameter
    must not be None, because SQL compares with NULL in another way.
    """

    every: "list[CompiledQuery[Any]]" = []

    def __init__(self, build: Callable[..., models.QuerySet[Found]], *types: type):
        self.build, self.types = build, types
        self.every.append(self)

    def all(self, *values: ColumnValue) -> list[Found]:
        """The rows for these values of the parameters."""
        if not shortcuts.are_used:
            return list(self.build(*values))
        plan = self._plan
        rows = fetch_rows(plan.sql, plan.parameters(values))
        return [plan.to_object(row) for row in plan.convert(rows)]

    def first(self, *values: ColumnValue) -> Found | None:
        """The first row that the database returns: for queries that match one."""
        return next(iter(self.all(*values)), None)

    @cached_property
    def _plan(self) -> "_Plan":
        return _Plan(self.build, [marker_of(*one) for one in enumerate(self.types)])


def marker_of(index: int, kind: type) -> ColumnValue:
    """A value that stands for a parameter while the SQL is built."""
    if kind is UUID:
        return UUID(int=2**127 + index)
    name = f"parameter {index}"
    if kind is list:
        return [name]
    if kind is bytes:
        return name.encode()
    return {name: name} if kind is dict else name


def plain_value(value: Any) -> Any:
    """A parameter of a statement; of JSON and bytes, what it is made from."""
    return value.obj if isinstance(value, (Jsonb, Binary)) else value


def literal(value: ColumnValue) -> str:
    """A constant as a part of the statement.

    PostgreSQL plans a prepared statement once, for whatever parameters. It uses an
    index with a condition only if constants say that the condition is met.
    """
    connection.ensure_connection()
    return Literal(value).as_string(connection.connection).replace("%", "%%")


class _Plan:
    """What Django's compiler knows of a queryset."""

    def __init__(self, build: Callable[..., Any], markers: list[ColumnValue]) -> None:
        self.compiler = build(*markers).query.get_compiler(ALIAS)
        sql, values = self.compiler.as_sql()
        self.sql, *rest = sql.split("%s")
        self.places = []  # by each placeholder: which parameter it takes
        for value, part in zip(values, rest, strict=True):
            is_parameter = (plain := plain_value(value)) in markers
            if is_parameter:
                self.places.append(markers.index(plain))
            self.sql += ("%s" if is_parameter else literal(value)) + part
        assert {*self.places} == {*range(len(markers))}, "each parameter is used"
        info, select = self.compiler.klass_info, self.compiler.select
        fields = info["select_fields"]
        self.model, self.slice = info["model"], slice(fields[0], fields[-1] + 1)
        self.names = [column[0].target.attname for column in select[self.slice]]
        populators: Any = get_related_populators  # the stubs are of a later Django
        self.related = populators(info, select, ALIAS)
        self.annotations = self.compiler.annotation_col_map
        self.converters = self.compiler.get_converters(
            expression for expression, *_ in select
        )

    def parameters(self, values: tuple[ColumnValue, ...]) -> list[Any]:
        stored = [Jsonb(one) if type(one) is dict else one for one in values]
        return [stored[index] for index in self.places]

    def convert(self, rows: list[TupleRow]) -> Any:
        if not self.converters:
            return rows
        return self.compiler.apply_converters(rows, self.converters)

    def to_object(self, row: TupleRow) -> Any:
        found = self.model.from_db(ALIAS, self.names, row[self.slice])
        for related in self.related:
            related.populate(row, found)
        for name, index in self.annotations.items():
            setattr(found, name, row[index])
        return found


def insert_row(row: models.Model, ignore_conflict: bool = False) -> bool:
    """Insert a row, as `save(force_insert=True)` of Django's Model does. Return True.

    ignore_conflict: insert nothing and return False if a unique value is taken. No
    savepoint is needed for that. Without it IntegrityError, as Django's.
    """
    if not shortcuts.are_used:
        return _insert_by_django(row, ignore_conflict)
    sql, fields = _insert_statement(type(row))
    if ignore_conflict:
        sql += " ON CONFLICT DO NOTHING"
    values = [_prepare(field, field.pre_save(row, True)) for field in fields]
    if not count_rows(sql, values):
        return False
    row._state.adding, row._state.db = False, ALIAS
    return True


def _insert_by_django(row: models.Model, ignore_conflict: bool) -> bool:
    try:
        with transaction.atomic(savepoint=ignore_conflict):
            models.Model.save(row, force_insert=True)
    except IntegrityError:
        if not ignore_conflict:
            raise
        return False
    return True


def update_rows(
    model: type[models.Model],
    where: Mapping[str, ColumnValue],
    changes: Mapping[str, ColumnValue],
) -> int:
    """Update the columns of the rows that match; return how many did.

    where: the value of each column, or the list of its values. changes: by the names of
    the fields.
    """
    if not shortcuts.are_used:
        conditions = {
            f"{name}__in" if isinstance(value, list) else name: value
            for name, value in where.items()
        }
        return model._base_manager.filter(**conditions).update(**changes)
    lists = frozenset(name for name in where if isinstance(where[name], list))
    sql, fields = _update_statement(model, tuple(changes), tuple(where), lists)
    values = [
        _prepare(field, value)
        for field, value in zip(fields, changes.values(), strict=True)
    ]
    return count_rows(sql, [*values, *where.values()])


def _prepare(field: Any, value: ColumnValue) -> Any:
    """What the statement gets for a value of a field, as Django's field says.

    Of these types the field returns the value itself, after a dozen calls.
    """
    if isinstance(value, models.Model):  # of a foreign key
        value = value.pk
    if value is None or type(value) is PLAIN_TYPES.get(field.get_internal_type()):
        return value
    return field.get_db_prep_save(value, connection)


@lru_cache(maxsize=200)
def _insert_statement(
    model: type[models.Model],
) -> tuple[str, list["models.Field[Any, Any]"]]:
    fields = [field for field in model._meta.local_concrete_fields]
    columns = ", ".join(_quote(field.column) for field in fields)
    values = ", ".join(_placeholder(field) for field in fields)
    table = _quote(model._meta.db_table)
    return f"INSERT INTO {table} ({columns}) VALUES ({values})", fields


@lru_cache(maxsize=500)
def _update_statement(
    model: type[models.Model],
    names: tuple[str, ...],
    where: tuple[str, ...],
    lists: frozenset[str],
) -> tuple[str, list[Any]]:
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    conditions: list[Any] = [model._meta.get_field(name) for name in where]
    sets = ", ".join(
        f"{_quote(field.column)} = {_placeholder(field)}" for field in fields
    )
    tests = " AND ".join(
        f"{_quote(field.column)} = " + ("ANY(%s)" if field.name in lists else "%s")
        for field in conditions
    )
    return f"UPDATE {_quote(model._meta.db_table)} SET {sets} WHERE {tests}", fields


def _placeholder(field: Any) -> str:
    """`%s`, with the cast that Django gives fields such as arrays."""
    if hasattr(field, "get_placeholder"):
        return field.get_placeholder(None, None, connection)
    return "%s"


def _quote(name: str | None) -> str:
    assert name, "each of these fields has a column"
    return connection.ops.quote_name(name)
