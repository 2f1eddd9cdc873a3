"""What bodies and answers of the API consist of."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack

from django.http import HttpRequest
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.utils.serializer_helpers import BindingDict

from core.api import hints
from core.text.bounded_json import JSON
from tenants import vault
from tenants.models import ApiKey, Scope

RESERVED_WORDS = {
    "wallets", "config", "invitation", "invitations", "connection", "connections", "credentials",
    "verification", "verifications", "presentations", "fromData", "propose", "health", "delete",
    "purge", "policy", "proposal", "requests", "autoSelect", "availableCredentials",
    "decline", "messages", "link",
}  # fmt: skip
METADATA = "metadata"  # the member of all objects with notes, and its kind
WHOLE_NUMBER = re.compile(r"\s*[+-]?[0-9]+(\.0*)?\s*", re.ASCII)
NO_IDENTIFIER = (
    "Use 1 to 128 printable characters (Unicode form NFC) other than / ? #, without a space at "
    "either end; `.` and `..` mean something else in a path."
)


Shown = TypeVar("Shown")  # the object that a response shows
Value = TypeVar("Value")


class FieldOptions(TypedDict, total=False):
    """Options that a field of ours passes on to that of REST framework."""

    source: str
    required: bool
    allow_null: bool
    help_text: str


class TextOptions(FieldOptions, total=False):
    allow_blank: bool


class Member(NamedTuple):
    """How a response gets one of its members.

    read: from the object; a method of the serializer too, if by_method. write: from the
    value that was read; None if JSON has it as it is.
    """

    name: str
    read: Callable[..., Any]
    by_method: bool
    write: Callable[[Any], object] | None


class Contract(serializers.Serializer[Shown]):
    """A response. Its fields describe it for OpenAPI and say where each value comes
    from.

    A value is what the method `get_<field>(obj)` returns or, without such a method,
    the attribute that `source` names (or that has the field's name), unsealed if it is
    one of `sealed_members`. Members stand in the order of the fields, but for
    `last_members`. None is left out, and so is an attribute that is an empty text where
    the field is optional.

    A serializer of REST framework binds a copy of each field for each response, which
    costs more than all the rest. This one prepares its members once for each class.
    """

    # The columns that a list reads. Without them: all that are not sealed.
    columns: tuple[str, ...] = ()
    # Those that hold values of credentials, proofs or messages, and their kind in the
    # audit log. A key without the scope `values` does not get them.
    value_members: tuple[str, ...] = ()
    value_kind = ""
    sealed_members: tuple[str, ...] = ()  # sealed columns of the same names
    last_members: tuple[str, ...] = ()  # those that a response ends with
    _members: tuple[Member, ...] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        members = []
        fields = cls._declared_fields
        for name in sorted(fields, key=lambda one: one in cls.last_members):
            field = fields[name]
            write = _writer_of(field)
            if method := getattr(cls, f"get_{name}", None):
                members.append(Member(name, method, True, write))
                continue
            if name in cls.sealed_members:
                members.append(Member(name, _unsealer_of(name), False, write))
                continue
            if write is str and not field.required:
                write = _write_optional_text
            read = attrgetter(field.source or name)
            members.append(Member(name, read, False, write))
        cls._members = tuple(members)

    def to_representation(self, instance: Shown) -> dict[str, object]:
        members = self.read_members(instance)
        if not self.value_members:
            return members
        held = members.keys() & set(self.members_with_values(instance))
        if not sees_values(self.context["request"]):
            return {name: members[name] for name in members if name not in held}
        if held and (read := self.context.get("values_read")) is not None:
            read |= {name if name == METADATA else self.value_kind for name in held}
        return members

    def read_members(self, instance: Shown) -> dict[str, object]:
        """All members of an object, also those that a key may not see."""
        members: dict[str, object] = {}
        for name, read, is_method, write in self._members:
            value = read(self, instance) if is_method else read(instance)
            if value is None:
                continue
            if write is None:
                members[name] = value
            elif (written := write(value)) is not None:
                members[name] = written
        return members

    @classmethod
    def show_all(
        cls, shown: Iterable[Shown], context: Mapping[str, object] = {}
    ) -> list[dict[str, object]]:
        """The response to a list."""
        every: Any = shown  # the stubs know of one object only
        return list(cls(every, many=True, context=context).data)

    def members_with_values(self, instance: Shown) -> Iterable[str]:
        """The members that hold values of this object."""
        return self.value_members


def sees_values(request: HttpRequest) -> bool:
    """Whether the answer may have values: to a page of the studio, or to such a key."""
    token = getattr(request, "auth", None)
    return not isinstance(token, ApiKey) or token.has_scope(Scope.VALUES)


def _writer_of(field: serializers.Field) -> Callable[[Any], object] | None:
    """How a value of the field is written, or None if JSON has it as it is."""
    if isinstance(field, serializers.DateTimeField):
        return format_utc
    if isinstance(field, serializers.CharField | serializers.ChoiceField):
        return str  # of a UUID, or of a member of TextChoices
    nested = field.child if isinstance(field, serializers.ListSerializer) else field
    return field.to_representation if isinstance(nested, Contract) else None


def _unsealer_of(column: str) -> Callable[[vault.SealedRow], object]:
    return lambda row: vault.unseal(row, column)


def _write_optional_text(value: object) -> str | None:
    return str(value) or None


class SharedFields(serializers.Serializer):
    """What a request is read by. Its fields are bound once for each class.

    REST framework binds a copy of each field for each request, which costs more than
    what the fields do. So a field keeps nothing of a request, and reads no context.
    """

    default_error_messages = dict(hints.MESSAGES[serializers.Serializer])
    messages: Mapping[
        type, Mapping[str, str]
    ] = {}  # of its fields, beside hints.MESSAGES

    @cached_property
    def fields(self) -> BindingDict:
        return bound_fields(type(self))


@cache
def bound_fields(kind: type[SharedFields]) -> BindingDict:
    """The fields of a class of serializers, bound to an instance of their own."""
    serializer = kind()
    fields = BindingDict(serializer)
    for name, field in serializer.get_fields().items():
        fields[name] = field
    hints.set_error_messages(fields.values(), kind.messages)
    return fields


class Parameters(SharedFields):
    """A request body. Null means absent unless the field allows it, unknown members
    are ignored, old spellings are read.
    """

    aliases: dict[str, str] = {}

    def to_internal_value(self, data: JSON) -> Any:
        if isinstance(data, dict):
            fields = self.fields
            data = {
                self.aliases.get(name, name): value
                for name, value in data.items()
                if value is not None or (name in fields and fields[name].allow_null)
            }
        return super().to_internal_value(data)


class IntegerField(serializers.IntegerField):
    """A whole number: of JSON, or a text of the digits 0 to 9.

    Python reads digits of all scripts, and `1_000`.
    """

    def to_internal_value(self, data: str | int | float) -> int:
        if isinstance(data, str) and not WHOLE_NUMBER.fullmatch(data):
            self.fail("invalid")
        return super().to_internal_value(data)


@extend_schema_field(
    {
        "type": "string",
        "minLength": 1,
        "maxLength": 128,
        "pattern": r"^(?!\.{1,2}$)[^\s/?#]([^\t\r\n/?#]*[^\s/?#])?$",
        "description": "Chosen by you, unique in your organization. Printable characters in the "
        "Unicode form NFC, no space at either end, no word of our paths.",
        "example": "room 2",
    }
)
class IdentifierField(serializers.CharField):
    """An id that the caller may choose: one segment of a path, and no word of ours
    there.
    """

    def __init__(self, **options: Unpack[TextOptions]) -> None:
        super().__init__(trim_whitespace=False, **options)
        self.error_messages |= {"blank": NO_IDENTIFIER, "invalid": NO_IDENTIFIER}

    def to_internal_value(self, data: str) -> str:
        value = super().to_internal_value(data)
        is_identifier = (
            1 <= len(value) <= 128
            and value.isprintable()
            and unicodedata.is_normalized("NFC", value)
            and value == value.strip()
            and value not in (".", "..")
            and not set(value) & set("/?#")
        )
        if not is_identifier:
            self.fail("invalid")
        if value in RESERVED_WORDS:
            raise serializers.ValidationError(
                f"`{value}` is a word of our paths; choose another."
            )
        return value


def drop_nulls(**members: Value | None) -> dict[str, Value]:
    """Return the members that have a value: nulls are left out of every answer."""
    return {name: value for name, value in members.items() if value is not None}


def format_utc(moment: datetime | None) -> str | None:
    """Return a time in UTC as `2026-01-31T08:00:00.000000Z`, or None for None.

    It must be in UTC already, as the database returns it: nothing is converted. The
    year has four digits, which strftime() does not promise.
    """
    if moment is None:
        return None
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
