"""Sentences that let a caller mend a call: other words than the framework's, the right address."""

from collections.abc import Iterable

from django.urls import Resolver404, resolve
from rest_framework import serializers

DATE = "Give a date and time, as 2026-01-31T08:00:00Z."
DATE_IN_ADDRESS = f"{DATE} In an address a + is written %2B."
SENTENCES = {
    serializers.CharField: {
        "invalid": "Give a text, not an object, a list, true or false."
    },
    serializers.DateTimeField: {"invalid": DATE, "date": DATE},
}
OF_ADDRESSES = {
    serializers.DateTimeField: {"invalid": DATE_IN_ADDRESS, "date": DATE_IN_ADDRESS}
}


def explain(fields: Iterable[serializers.Field], more: dict | None = None) -> None:
    """Gives the fields our sentences, where they have the framework's.

    more: sentences that go before the usual ones, by class of field.
    """
    for field in fields:
        sentences = of_class(field, SENTENCES) | of_class(field, more or {})
        if isinstance(field, serializers.ChoiceField):
            choices = ", ".join(str(choice) for choice in field.choices)
            sentences["invalid_choice"] = f"Choose from {choices}."
        for code, sentence in sentences.items():
            if field.error_messages.get(code) == framework_sentence(field, code):
                field.error_messages[code] = sentence
        child = getattr(field, "child", None)
        if child is not None and not isinstance(child, serializers.Serializer):
            explain([child], more)


def of_class(field: serializers.Field, sentences: dict) -> dict:
    return next(
        (said for kind, said in sentences.items() if isinstance(field, kind)), {}
    )


def framework_sentence(field: serializers.Field, code: str) -> object:
    classes = (
        vars(kind).get("default_error_messages", {}) for kind in type(field).__mro__
    )
    return next((messages[code] for messages in classes if code in messages), None)


def right_address(path: str) -> str:
    """A sentence with the address that was meant, or nothing. It begins with a space."""
    if path.endswith("/") and is_of_api(path.rstrip("/")):
        meant = path.rstrip("/")
        return f" Addresses have no slash at the end: use {meant}; or the id is empty."
    for prefix in ("/api/v1", "/v1", "/api"):
        meant = path.removeprefix(prefix)
        if meant != path and is_of_api(meant):
            return f" Use {meant}, without {prefix}; the wallet API is /api/{{walletId}}/…."
    return ""


def is_of_api(path: str) -> bool:
    try:
        return hasattr(resolve(path).func, "cls")  # a view of REST framework
    except Resolver404:
        return False
