"""What all API views share: how they find, read, answer and fail.

Success is 200 with `application/json` whatever Accept says; errors are flat `{"code", "message"}`
with `errors` by field where fields are at fault. The original clients break on anything else.
"""

import logging
import sys
import unicodedata
import uuid
from functools import partial

from django.core.exceptions import DisallowedHost
from django.core.exceptions import ValidationError as CoreValidationError
from django.db import DataError
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import render
from django.template.loader import render_to_string
from drf_spectacular.utils import extend_schema_field
from rest_framework import exceptions, serializers, viewsets
from rest_framework.response import Response
from rest_framework.views import set_rollback

from agency.api import dialects, hints, ignored_members, long_poll, pagination
from agency.core.database.base import is_caused_by_outage, is_outage
from agency.core.errors import AgencyError, DatabaseAway, InProgress, NotFound, NotReady
from tenants import idempotency

logger = logging.getLogger(__name__)
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


def heavy(handler):
    """Marks a handler with long cryptography: it runs in its own threads (agency/server/web.py)."""
    handler.is_heavy = True
    return handler


class View(viewsets.ViewSet):
    """A view of the credentials API, which acts on the organization's own wallet."""

    once = None  # the write's Idempotency-Key at work, if it came with one

    @property
    def tenant(self):
        return self.request.user.tenant

    @property
    def owner(self):
        """Whose Idempotency-Keys these are."""
        return {"tenant": self.tenant}

    def initial(self, request, *args, **kwargs):
        """DRF calls the handler next: that of a write with a key runs inside `answer_once`."""
        super().initial(request, *args, **kwargs)
        name = request.method.lower()
        if request.method in idempotency.METHODS and idempotency.HEADER in request.headers:
            handler = getattr(self, name, self.http_method_not_allowed)
            setattr(self, name, partial(self.answer_once, handler))

    def answer_once(self, handler, request, *args, **kwargs):
        same = idempotency.fingerprint(
            request.method, request.get_full_path(), dialects.is_literal(request), request.data
        )
        operation = f"{request.method} {request.resolver_match.route}"
        key = request.headers[idempotency.HEADER]
        self.once = idempotency.Once(self.owner, key, operation, same)
        body, is_replayed = self.once.answer(lambda: handler(request, *args, **kwargs).data)
        return Response(body, headers={"Idempotency-Replayed": "true"} if is_replayed else None)

    def act(self, function, *arguments, before=None, shown_once=False):
        """The one effect of a write: `function`, in one transaction with the key if one is given.

        What stands behind it in a handler sees the drain done, and runs again for the answer if a
        killed process left none; so it changes nothing, unless to undo the effect and refuse.
        before: what takes long or commits by itself; its result becomes the last argument.
        shown_once: the answer holds secrets; it is not kept.
        """
        if self.once:
            return self.once.act(function, *arguments, before=before, shown_once=shown_once)
        return function(*arguments, *([before()] if before else []))

    def parsed(self, serializer_class):
        """The validated body; a broken one is a 400 that names the fields."""
        serializer = serializer_class(data=self.request.data)
        self.name_ignored_members(serializer)
        serializer.is_valid(raise_exception=True)
        return serializer.validated_data

    def name_ignored_members(self, serializer):
        """In a header of the answer, whether it is a success or not."""
        if named := ignored_members.header(
            ignored_members.members(serializer, serializer.initial_data)
        ):
            self.headers[ignored_members.MEMBERS] = named

    def query(self, serializer_class):
        """The serializer of the query parameters, valid; empty ones count as absent."""
        asked = self.request.query_params
        serializer = serializer_class(data={name: asked[name] for name in asked if asked[name]})
        if named := ignored_members.header(name for name in asked if name not in serializer.fields):
            self.headers[ignored_members.PARAMETERS] = named
        serializer.is_valid(raise_exception=True)
        return serializer

    def shown(self, contract, obj):
        return Response(contract(obj, context=self.context).data)

    def settled(self, contract, read):
        """Shows what `read` finds; with `Prefer: wait=N` once it waits no more for its peer."""
        row, seconds = long_poll.settled(read, self.request.headers.get("Prefer", ""))
        answer = self.shown(contract, row)
        if seconds is not None:
            answer["Preference-Applied"] = f"wait={seconds}"
        return answer

    def listed(self, contract, rows, query_class=pagination.ListQuery):
        """A plain array of the newest rows, or of those asked for; `Link` says where it goes on."""
        query = self.query(query_class)
        page = pagination.page(pagination.narrowed(rows, contract.columns), query)
        answer = Response(contract(page.rows, many=True, context=self.context).data)
        if page.cursor:
            answer["Link"] = pagination.next_link(self.request, page.cursor)
        return answer

    @property
    def context(self):
        return {"request": self.request}


class Contract(serializers.Serializer):
    """An answer. Fields describe it for OpenAPI; subclasses write `to_representation` by hand."""

    columns: tuple[str, ...] = ()  # those that a list reads; without, all that are not sealed

    def to_representation(self, instance):
        raise NotImplementedError


def compact(**members):
    """The members that have a value: nulls are left out of every answer."""
    return {name: value for name, value in members.items() if value is not None}


def utc(moment):
    """`2026-01-31T08:00:00.000000Z`, or None."""
    return moment and moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def find(rows, identifier, column="pk"):
    """The row with this UUID, or 404."""
    try:
        identifier = uuid.UUID(str(identifier))
    except ValueError:
        identifier = None
    row = rows.filter(**{column: identifier}).first() if identifier else None
    return found(row, rows.model)


def found(row, model):
    if row is None:
        name = model._meta.verbose_name
        raise NotFound(
            "not_found",
            f"There is no such {name} in your organization. Either the id is wrong, "
            f"the {name} was deleted, or the keys are another organization's.",
        )
    return row


def exception_handler(error, context):
    set_rollback()
    if is_outage(error):
        logger.warning("the database is out of reach: %s", error)
        error = DatabaseAway()
    if isinstance(error, AgencyError):
        hint = hints.right_address(context["request"].path_info) if error.status == 404 else ""
        answer = problem(error.status, error.code, error.message + hint, error.errors)
        if isinstance(error, InProgress | NotReady):
            answer["Retry-After"] = str(error.retry_after)
        return answer
    if isinstance(error, exceptions.ValidationError):
        fields = flatten(error.detail)
        return problem(400, "invalid_request", sentence(fields), fields)
    if isinstance(error, Http404 | exceptions.NotFound):
        return problem(404, "not_found", "There is nothing at this address.")
    if isinstance(error, DataError | OverflowError | CoreValidationError):
        return problem(400, "invalid_request", "A value is out of range.")
    if isinstance(error, exceptions.APIException):
        code = error.get_codes() if error.default_code == "parse_error" else None
        message = str(error.detail)
        if isinstance(error, exceptions.MethodNotAllowed):
            message = not_allowed(context["request"], context["view"])
        answer = problem(error.status_code, code or code_of(error.status_code), message)
        if getattr(error, "auth_header", None):
            answer["WWW-Authenticate"] = error.auth_header
        return answer
    return None


def not_allowed(request, view):
    allowed = ", ".join(method for method in view.allowed_methods if method != "OPTIONS")
    hint = hints.right_address(request.path_info)
    return f"{request.method} is not taken at this address, only {allowed}.{hint}"


def code_of(status_code):
    return CODES.get(status_code, "error")


def problem(status_code, code, message, errors=None):
    return Response(compact(code=code, message=message, errors=errors or None), status=status_code)


def flatten(detail, path=""):
    """DRF's nested detail as `{"attributes[0].policyName": ["…"]}`."""
    if isinstance(detail, dict):
        fields = {}
        for name, inner in detail.items():
            here = path if name == "non_field_errors" else f"{path}.{name}" if path else str(name)
            if isinstance(name, int):
                here = f"{path}[{name}]"
            fields |= flatten(inner, here)
        return fields
    if isinstance(detail, list) and any(isinstance(inner, dict | list) for inner in detail):
        return flatten({number: inner for number, inner in enumerate(detail) if inner}, path)
    sentences = [str(inner) for inner in (detail if isinstance(detail, list) else [detail])]
    return {path or "body": sentences}


def sentence(fields):
    return " ".join(f"{name}: {' '.join(sentences)}" for name, sentences in fields.items())[:1000]


def bad_request(request, exception=None):
    """What Django refuses to read: 400. People who browse get a page, here and below."""
    wrong_host = isinstance(exception, DisallowedHost)
    if browses(request):
        return render(request, "400.html", {"wrong_host": wrong_host}, status=400)
    message = "The request could not be read."
    if wrong_host:
        message = "This host name is not ours. Use the address that the operator gave you."
    return plain_problem(400, "invalid_request", message)


def forbidden(request, exception=None):
    if browses(request):
        return render(request, "403.html", status=403)
    return plain_problem(403, "forbidden", "You may not do this.")


def csrf_failure(request, reason=""):
    if browses(request):
        return render(request, "403_csrf.html", status=403)
    return plain_problem(403, "forbidden", "The form carries no valid CSRF token. Load it again.")


def not_found(request, exception=None):
    """404 outside of any view."""
    if browses(request):
        return render(request, "404.html", status=404)
    hint = hints.right_address(request.path_info[:200])
    return plain_problem(404, "not_found", f"There is nothing at {request.path[:200]}.{hint}")


def server_error(request):
    """What a view or a middleware raised: `handler500` is called while it is handled."""
    if is_caused_by_outage(sys.exc_info()[1]):
        return database_away(request)
    message = f"Something broke on our side. Quote the request id {getattr(request, 'id', '-')}."
    return outage(request, 500, "internal_error", message)


def database_away(request):
    """503 outside of the APIs' views."""
    error = DatabaseAway()
    answer = outage(request, error.status, error.code, error.message)
    answer["Retry-After"] = str(error.retry_after)
    return answer


def outage(request, status_code, code, message):
    """A failure of ours, 5xx, told without the session, the database or collected files.

    Each of them may be what is broken, so the page (`500.html`, `503.html`) gets no request.
    """
    if not browses(request):
        return plain_problem(status_code, code, message)
    page = render_to_string(f"{status_code}.html", {"request_id": getattr(request, "id", "")})
    return HttpResponse(page, status=status_code)


def browses(request):
    return "text/html" in request.headers.get("Accept", "").lower()


def plain_problem(status_code, code, message):
    return JsonResponse({"code": code, "message": message}, status=status_code)


RESERVED = {
    "wallets", "config", "invitation", "invitations", "connection", "connections", "credentials",
    "verification", "verifications", "presentations", "fromData", "propose", "health", "delete",
    "purge", "policy", "proposal", "autoSelect", "availableCredentials", "decline",
}  # fmt: skip


class Parameters(serializers.Serializer):
    """A request body. Null means absent unless the field allows it, unknown members are
    ignored, old spellings are read."""

    aliases: dict[str, str] = {}

    def get_fields(self):
        fields = super().get_fields()
        hints.explain(fields.values())
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


NO_IDENTIFIER = (
    "Use 1 to 128 printable characters (Unicode form NFC) other than / ? #, without a space at "
    "either end; `.` and `..` mean something else in a path."
)


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
        if value in RESERVED:
            raise serializers.ValidationError(f"`{value}` is a word of our paths; choose another.")
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
