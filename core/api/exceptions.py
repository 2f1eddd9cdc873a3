"""How requests fail: every error is flat JSON, `{"code", "message"}`, with `errors` by
field, the id of the request and the address of the page of its code.

The original clients break on any other shape. People who browse get a page instead:
core/api/error_pages.py.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypedDict

from django.conf import settings
from django.core.exceptions import ValidationError as CoreValidationError
from django.db import DataError
from django.http import Http404, HttpResponse, JsonResponse
from rest_framework import exceptions
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView, set_rollback

from core.api import hints, ignored_members
from core.api.serializers import drop_nulls
from core.database.base import is_outage
from core.errors import AgencyError, DatabaseAway, NoSuchObject
from core.telemetry import logs

logger = logging.getLogger(__name__)
# What is wrong by field, and by number in a list.
Detail: TypeAlias = (
    "str | Sequence[Detail] | Mapping[str, Detail] | Mapping[int, Detail]"
)
MALFORMED_FORM = (
    "The form cannot be read. Send multipart/form-data with the boundary of its parts "
    "in the Content-Type, as HTTP clients do by themselves."
)
CODES = {
    400: "invalid_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    408: "body_timeout",
    406: "not_acceptable",
    413: "body_too_large",
    415: "unsupported_media_type",
    429: "too_many_requests",
}


class Context(TypedDict):
    """Of a call that failed, as REST framework describes it."""

    view: APIView
    request: Request


def exception_handler(error: Exception, context: Context) -> Response | None:
    """The response to whatever a view of the API raised. None: Django answers 500.

    An AgencyError has its own status and code. A value that only the database refuses
    is the caller's mistake, a 400.
    """
    set_rollback()  # as REST framework's own handler does
    response = response_to(error, context)
    if response is not None and response.status_code == 400:
        ignored = ignored_members.sentences(getattr(context["view"], "ignored", ()))
        if ignored:
            response.data["errors"] = response.data.get("errors", {}) | ignored
    return response


def response_to(error: Exception, context: Context) -> Response | None:
    if is_outage(error):
        logger.warning("the database could not answer: %s", error)
        error = DatabaseAway()
    if isinstance(error, AgencyError):
        message = error.message
        if isinstance(error, NoSuchObject):
            tenant = getattr(context["request"].user, "tenant", None)
            message = hints.name_object(error, tenant) if tenant else message
        if error.status == 404:
            message += hints.suggest_address(context["request"].path_info)
        response = error_response(error.status, error.code, message, error.errors)
        set_retry_after(response, error)
        return response
    if isinstance(error, exceptions.ValidationError):
        fields = flatten_errors(error.detail)
        return error_response(400, "invalid_request", errors_as_text(fields), fields)
    if isinstance(error, Http404 | exceptions.NotFound):
        return error_response(404, "not_found", "There is nothing at this address.")
    if isinstance(error, DataError | OverflowError | CoreValidationError):
        return error_response(400, "invalid_request", "A value is out of range.")
    if isinstance(error, exceptions.APIException):
        return response_to_rest_framework(error, context)
    return None


def response_to_rest_framework(
    error: exceptions.APIException, context: Context
) -> Response:
    """Return the response to an exception of REST framework's own."""
    code = CODES.get(error.status_code, "error")
    message = str(error.detail)
    if isinstance(error, exceptions.ParseError):
        code = str(error.get_codes())
        if code == error.default_code:  # of REST framework's own parser
            code, message = "malformed_form", MALFORMED_FORM
    if isinstance(error, exceptions.MethodNotAllowed):
        message = method_not_allowed(context["request"], context["view"])
    response = error_response(error.status_code, code, message)
    if header := getattr(error, "auth_header", None):
        response["WWW-Authenticate"] = header
    return response


def method_not_allowed(request: Request, view: APIView) -> str:
    allowed = ", ".join(
        method for method in view.allowed_methods if method != "OPTIONS"
    )
    hint = hints.suggest_address(request.path_info)
    return f"{request.method} is not taken at this address, only {allowed}.{hint}"


def error_response(
    status_code: int,
    code: str,
    message: str,
    errors: dict[str, list[str]] | None = None,
) -> Response:
    """Return an error of a view of the API. Other views use `plain_error_response`."""
    response = Response(error_body(code, message, errors), status=status_code)
    response.error_code = code  # type: ignore[attr-defined]  # for the log of calls
    return response


def plain_error_response(status_code: int, code: str, message: str) -> JsonResponse:
    """Return an error as JSON, code and message, outside of REST framework."""
    response = JsonResponse(error_body(code, message), status=status_code)
    response.error_code = code  # type: ignore[attr-defined]  # for the log of calls
    return response


def error_body(
    code: str,
    message: str,
    errors: dict[str, list[str]] | None = None,
    request_id: str = "",
) -> dict[str, str | dict[str, list[str]]]:
    """The body of an error. request_id: default is that of the current call."""
    return drop_nulls(
        code=code,
        message=message,
        errors=errors or None,
        requestId=request_id or logs.current_request_id() or None,
        documentationUrl=f"{settings.PUBLIC_URL}/docs/errors#{code}",
    )


def set_retry_after(response: HttpResponse, error: AgencyError) -> None:
    """Set `Retry-After` if the error says when the request may succeed.

    Then nothing is broken, so Django must not log it as an error.
    """
    if error.retry_after is not None:
        response["Retry-After"] = str(error.retry_after)
        response._has_been_logged = True  # type: ignore[attr-defined]


def flatten_errors(detail: Detail, path: str = "") -> dict[str, list[str]]:
    """The nested detail of REST framework as `{"attributes[0].policyName": ["…"]}`."""
    if isinstance(detail, dict):
        fields: dict[str, list[str]] = {}
        for name, inner in detail.items():
            if isinstance(name, int):
                here = f"{path}[{name}]"
            elif name == "non_field_errors":
                here = path
            else:
                here = f"{path}.{name}" if path else str(name)
            fields |= flatten_errors(inner, here)
        return fields
    if isinstance(detail, list) and any(
        isinstance(inner, dict | list) for inner in detail
    ):
        numbered = {number: inner for number, inner in enumerate(detail) if inner}
        return flatten_errors(numbered, path)
    sentences = [
        str(inner) for inner in (detail if isinstance(detail, list) else [detail])
    ]
    return {path or "body": sentences}


def errors_as_text(fields: dict[str, list[str]]) -> str:
    texts = (f"{name}: {' '.join(sentences)}" for name, sentences in fields.items())
    return " ".join(texts)[:1000]
