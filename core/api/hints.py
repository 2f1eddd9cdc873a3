"""Error messages that help a caller to correct a request."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from django.apps import apps
from django.db.models import Case, Q, Value, When
from django.urls import Resolver404, resolve
from rest_framework import serializers

from core.errors import NoSuchObject
from tenants.models import Tenant

DATE_EXPECTED = "Give a date and time, as 2026-01-31T08:00:00Z."
DATE_EXPECTED_IN_QUERY = f"{DATE_EXPECTED} In an address a + is written %2B."
WRONG_DATES = ("invalid", "date", "overflow", "make_aware")
LENGTHS = {
    "max_length": "Give at most %(limit_value)s characters.",
    "min_length": "Give at least %(limit_value)s characters.",
}
NUMBERS = {
    "max_length": "Give at most %(limit_value)s.",
    "min_length": "Give at least %(limit_value)s.",
}
# By class of field, the general ones first.
MESSAGES: Mapping[type, Mapping[str, str]] = {
    serializers.Field: {
        "required": "It is missing.",
        "null": "Give a value, not null.",
        "max_value": "Give %(limit_value)s or less.",
        "min_value": "Give %(limit_value)s or more.",
        "surrogate_characters_not_allowed": "Give whole characters.",
        "null_characters_not_allowed": "The character U+0000 is not allowed.",
    },
    serializers.BooleanField: {"invalid": "Give true or false."},
    serializers.CharField: LENGTHS
    | {
        "invalid": "Give a text, not an object, a list, true or false.",
        "blank": "Give a text that is not empty.",
    },
    serializers.IntegerField: {
        "invalid": "Give a whole number.",
        "max_string_length": "Give a number with fewer digits.",
    },
    serializers.DateTimeField: dict.fromkeys(WRONG_DATES, DATE_EXPECTED),
    serializers.UUIDField: {"invalid": "Give a UUID."},
    serializers.DictField: {
        "not_a_dict": "Give an object.",
        "empty": "Give an object with at least one member.",
    },
    serializers.ListField: NUMBERS
    | {"not_a_list": "Give a list.", "empty": "Give at least one."},
    serializers.ListSerializer: NUMBERS
    | {"not_a_list": "Give a list.", "empty": "Give at least one."},
    serializers.Serializer: {"invalid": "Give an object."},
}
QUERY_MESSAGES: Mapping[type, Mapping[str, str]] = {
    serializers.DateTimeField: dict.fromkeys(WRONG_DATES, DATE_EXPECTED_IN_QUERY)
}


def set_error_messages(
    fields: Iterable[serializers.Field],
    more: Mapping[type, Mapping[str, str]] | None = None,
) -> None:
    """Replace the framework's error messages of the fields by ours.

    more: messages by class of field, which override MESSAGES.
    """
    for field in fields:
        messages = messages_for(field, {**MESSAGES, **(more or {})})
        if isinstance(field, serializers.ChoiceField):
            choices = ", ".join(str(choice) for choice in field.choices)
            messages["invalid_choice"] = f"Choose from {choices}."
        for code, message in messages.items():
            if field.error_messages.get(code) is default_message(field, code):
                field.error_messages[code] = message
        for validator in field.validators:
            code = getattr(validator, "code", "invalid")
            # `invalid` is the field's own.
            if code != "invalid" and code in messages:
                validator.message = messages[code]  # type: ignore[union-attr]
        child = getattr(field, "child", None)
        if child is not None:
            set_error_messages([child], more)


def messages_for(
    field: serializers.Field, by_class: Mapping[type, Mapping[str, str]]
) -> dict[str, str]:
    found: dict[str, str] = {}
    for field_class, messages in by_class.items():
        if isinstance(field, field_class):
            found |= messages
    return found


def default_message(field: serializers.Field, code: str) -> object:
    """The framework's message, of the nearest class that has one for this code."""
    for field_class in type(field).__mro__:
        messages = vars(field_class).get("default_error_messages", {})
        if code in messages:
            return messages[code]
    return None


def name_object(error: NoSuchObject, tenant: Tenant) -> str:
    """The message of a 404, which says what the id is if it is one of another kind, or
    of a hosted wallet, in the organization.

    One statement reads all kinds: the models with an `api_id`, the column by which the
    API names them.
    """
    try:
        key = UUID(error.identifier)
    except ValueError:
        key = None
    branches = []
    for model in apps.get_models():
        column = getattr(model, "api_id", "")
        value = key if column == "pk" else error.identifier
        if not column or value is None:
            continue
        names = {field.name for field in model._meta.fields}
        wallet = "wallet__wallet_id" if "wallet" in names else Value("")
        rows = model._default_manager.filter(tenant=tenant, **{column: value})
        hosted = Q(wallet__is_organization=False) if "wallet" in names else Q(pk=None)
        branches.append(
            rows.order_by().values_list(
                Value(model._meta.label_lower),
                Case(When(hosted, then=wallet), default=Value("")),
            )
        )
    found = branches[0].union(*branches[1:]).order_by()
    for label, wallet_id in found[: len(branches)]:
        name = apps.get_model(label)._meta.verbose_name
        if wallet_id:
            return (
                f"{error.known} this wallet. It is the id of a {name} of the hosted "
                f"wallet {wallet_id}."
            )
        if label != error.model._meta.label_lower:
            return f"{error.known} your organization. It is the id of a {name}."
    return error.message


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
