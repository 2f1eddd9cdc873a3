"""What bodies and answers of the API consist of."""

import unicodedata

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agency.api import hints

RESERVED_WORDS = {
    "wallets", "config", "invitation", "invitations", "connection", "connections", "credentials",
    "verification", "verifications", "presentations", "fromData", "propose", "health", "delete",
    "purge", "policy", "proposal", "autoSelect", "availableCredentials", "decline",
}  # fmt: skip
NO_IDENTIFIER = (
    "Use 1 to 128 printable characters (Unicode form NFC) other than / ? #, without a space at "
    "either end; `.` and `..` mean something else in a path."
)


class Contract(serializers.Serializer):
    """An answer. Fields describe it for OpenAPI; subclasses write `to_representation` by hand."""

    columns: tuple[
        str, ...
    ] = ()  # those that a list reads; without, all that are not sealed

    def to_representation(self, instance):
        raise NotImplementedError


class Parameters(serializers.Serializer):
    """A request body. Null means absent unless the field allows it, unknown members are
    ignored, old spellings are read."""

    aliases: dict[str, str] = {}

    def get_fields(self):
        fields = super().get_fields()
        hints.set_error_messages(fields.values())
        return fields

    def to_internal_value(self, data):
        if isinstance(data, dict):
            data = {
                self.aliases.get(name, name): value
                for name, value in data.items()
                if value is not None or self.takes_null(name)
            }
        return super().to_internal_value(data)

    def takes_null(self, name):
        return name in self.fields and self.fields[name].allow_null


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
    """An id that the caller may choose: one segment of a path, and no word of ours there."""

    def __init__(self, **options):
        super().__init__(trim_whitespace=False, **options)
        self.error_messages |= {"blank": NO_IDENTIFIER, "invalid": NO_IDENTIFIER}

    def to_internal_value(self, data):
        value = super().to_internal_value(data)
        if not is_identifier(value):
            self.fail("invalid")
        if value in RESERVED_WORDS:
            raise serializers.ValidationError(
                f"`{value}` is a word of our paths; choose another."
            )
        return value


def is_identifier(text):
    return (
        1 <= len(text) <= 128
        and text.isprintable()
        and unicodedata.is_normalized("NFC", text)
        and text == text.strip()
        and text not in (".", "..")
        and not set(text) & set("/?#")
    )


def drop_nulls(**members):
    """The members that have a value: nulls are left out of every answer."""
    return {name: value for name, value in members.items() if value is not None}


def format_utc(moment):
    """`2026-01-31T08:00:00.000000Z`, or None."""
    return moment and moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
