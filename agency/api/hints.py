"""Error messages that help a caller to correct a request."""

from collections.abc import Iterable

from django.urls import Resolver404, resolve
from rest_framework import serializers

DATE_EXPECTED = "Give a date and time, as 2026-01-31T08:00:00Z."
DATE_EXPECTED_IN_QUERY = f"{DATE_EXPECTED} In an address a + is written %2B."
MESSAGES = {
    serializers.CharField: {
        "invalid": "Give a text, not an object, a list, true or false."
    },
    serializers.DateTimeField: {"invalid": DATE_EXPECTED, "date": DATE_EXPECTED},
}
QUERY_MESSAGES = {
    serializers.DateTimeField: {
        "invalid": DATE_EXPECTED_IN_QUERY,
        "date": DATE_EXPECTED_IN_QUERY,
    }
}


def set_error_messages(
    fields: Iterable[serializers.Field], more: dict[type, dict[str, str]] | None = None
) -> None:
    """Replace the framework's error messages of the fields by ours.

    more: messages by class of field, which override MESSAGES.
    """
    for field in fields:
        messages = messages_for(field, MESSAGES) | messages_for(field, more or {})
        if isinstance(field, serializers.ChoiceField):
            choices = ", ".join(str(choice) for choice in field.choices)
            messages["invalid_choice"] = f"Choose from {choices}."
        for code, message in messages.items():
            if field.error_messages.get(code) is default_message(field, code):
                field.error_messages[code] = message
        child = getattr(field, "child", None)
        if child is not None and not isinstance(child, serializers.Serializer):
            set_error_messages([child], more)


def messages_for(
    field: serializers.Field, by_class: dict[type, dict[str, str]]
) -> dict[str, str]:
    for field_class, messages in by_class.items():
        if isinstance(field, field_class):
            return messages
    return {}


def default_message(field: serializers.Field, code: str) -> object:
    """The framework's message, of the nearest class that has one for this code."""
    for field_class in type(field).__mro__:
        messages = vars(field_class).get("default_error_messages", {})
        if code in messages:
            return messages[code]
    return None


def suggest_address(path: str) -> str:
    """A sentence with the address that was probably meant, after a space; else empty."""
    if path.endswith("/") and is_api_path(path.rstrip("/")):
        meant = path.rstrip("/")
        return f" Addresses have no slash at the end: use {meant}; or the id is empty."
    for prefix in ("/api/v1", "/v1", "/api"):
        meant = path.removeprefix(prefix)
        if meant != path and is_api_path(meant):
            return f" Use {meant}, without {prefix}; the wallet API is /api/{{walletId}}/…."
    return ""


def is_api_path(path: str) -> bool:
    try:
        return hasattr(resolve(path).func, "cls")  # a view of REST framework
    except Resolver404:
        return False
