"""What all views of the API share: how they find rows, read bodies, write and respond.

Success is 200 with `application/json` whatever Accept says; the original clients break
on anything else. How they fail: core/api/exceptions.py.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from django.db import models
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from drf_spectacular.utils import OpenApiParameter
from rest_framework import exceptions, serializers, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from core.api import dialects, ignored_members, long_poll, pagination
from core.api.authentication import UNAUTHORIZED
from core.api.caller_cache import Caller
from core.api.notes import NotesParameters, notes_in
from core.api.serializers import Contract, sees_values
from core.database.uuids import parse_uuid
from core.errors import AgencyError, Conflict, Forbidden, Invalid, NoSuchObject
from core.version import API_VERSION
from tenants import audit, idempotency
from tenants.models import ApiKey, NotedRow, Scope, Tenant

MISSING_SCOPE = (
    "The access token does not have the scope `{scope}`, which this call needs. Use "
    "another one: owners can make it in the studio."
)

API_VERSION_HEADER = "X-Agency-Api-Version"

# What most views do with one object, for route().
DETAIL = {"get": "retrieve", "patch": "update", "delete": "destroy"}

Handler = Callable[..., Response]
Decorated = TypeVar("Decorated", bound=Callable[..., HttpResponseBase])
Shown = TypeVar("Shown")
Result = TypeVar("Result")
Row = TypeVar("Row", bound=models.Model)
Noted = TypeVar("Noted", bound=NotedRow)
Waiting = TypeVar("Waiting", bound=long_poll.AwaitsPeer)
Query = TypeVar("Query", bound=serializers.Serializer)


class Operation(NamedTuple):
    """What a handler declares: core/api/openapi/operation.py.

    scope: of the access token; None where none is sent. parameters: serializers of the
    query, or OpenApiParameters. deprecation: headers of each response.
    """

    operation_id: str = ""
    scope: Scope | None = None
    parameters: Sequence[type[serializers.Serializer] | OpenApiParameter] = ()
    is_irreversible: bool = False
    deprecation: Mapping[str, str] = {}


def operation_of(handler: object) -> Operation:
    """What the handler declares; an empty one, if it answers 405."""
    return getattr(handler, "operation", Operation())


def method_of(request: HttpRequest) -> str:
    """The method in lower case, as views name their handlers."""
    return (request.method or "").lower()


def heavy(handler: Decorated) -> Decorated:
    """Mark a handler with long cryptography, and return it.

    It runs in threads of its own (agency/server/web.py).
    """
    handler.is_heavy = True  # type: ignore[attr-defined]
    return handler


class View(viewsets.ViewSet):
    """The base of all views. Those of organizations act on the wallet of their own."""

    # Set while a write with an Idempotency-Key runs.
    idempotent_request: idempotency.IdempotentRequest | None = None
    ignored: tuple[str, ...] = ()  # members and parameters that no field reads
    is_irreversible = False  # set by check_call()
    values_read: set[str]  # the kinds of values that the answer has

    @property
    def caller(self) -> Caller:
        """The organization that calls, as TenantAuthentication has found it."""
        caller: object = self.request.user
        assert isinstance(caller, Caller)
        return caller

    @property
    def token(self) -> ApiKey:
        """The access token of the call, or the key of the account that calls."""
        assert isinstance(self.request.auth, ApiKey)
        return self.request.auth

    @property
    def tenant(self) -> Tenant:
        return self.caller.tenant

    @property
    def owner(self) -> dict[str, models.Model]:
        """Whose Idempotency-Keys these are."""
        return {"tenant": self.tenant}

    def dispatch(self, request: HttpRequest, *args: str, **kwargs: str) -> Response:
        """Respond to a call by the handler that its route names, or by an error.

        This is REST framework's own, but for check_call() and the Idempotency-Key: with
        one, the handler runs inside `respond_once`.
        """
        self.request = call = self.initialize_request(request, *args, **kwargs)
        self.headers = self.default_response_headers
        self.values_read = set()
        try:
            handler = self.find_handler(call)
            self.initial(call, *args, **kwargs)
            self.check_call(call, handler)
            if (
                call.method in idempotency.METHODS
                and idempotency.HEADER in call.headers
            ):
                response = self.respond_once(handler, call, **kwargs)
            else:
                response = handler(call, **kwargs)
        except Exception as error:
            response = self.handle_exception(error)  # raises what is no error of a call
        return self.finalize_response(call, response, *args, **kwargs)

    def find_handler(self, request: Request) -> Handler:
        """The method for this call: it is in `action_map`, unless it answers 405."""
        name = method_of(request)
        if name in self.http_method_names:
            return getattr(self, name, self.http_method_not_allowed)
        return self.http_method_not_allowed

    def check_call(self, request: Request, handler: Handler) -> None:
        """Refuse a call that its key or its headers do not allow.

        403 `missing_scope` unless the key has the scope of the operation, 400
        `unknown_api_version`, and 400 `invalid_request` for a query parameter that an
        irreversible call, or a list by a strict key, does not read.
        """
        wanted = request.headers.get(API_VERSION_HEADER, API_VERSION)
        if wanted != API_VERSION:
            raise Invalid(
                "unknown_api_version",
                f"There is no version {wanted[:40]!r} of this API. Send {API_VERSION} as "
                f"{API_VERSION_HEADER}, or leave the header out.",
            )
        operation = operation_of(handler)
        if method_of(request) in self.action_map:
            self.require_scope(operation.scope)
        self.is_irreversible = operation.is_irreversible or request.method == "DELETE"
        if self.is_irreversible or self.is_strict_list:
            known = ignored_members.parameter_names(operation.parameters)
            ignored_members.refuse_parameters(request.query_params, known)

    @property
    def is_strict_list(self) -> bool:
        """Whether a strict key asks for a list, at a path without a prefix."""
        is_list = self.request.method == "GET" and (self.action or "").startswith(
            "list"
        )
        return is_list and self.token.strict and dialects.is_bare(self.request)

    def require_scope(self, scope: str | None) -> None:
        """403 `missing_scope` unless the access token of the call has this scope; 409
        below the prefixes whose clients take a 403 for success.
        """
        if not self.token.has_scope(scope):
            raise missing_scope(scope, dialects.is_wallet_prefix(self.request))

    def finalize_response(
        self, request: Request, response: Response, *args: str, **kwargs: str
    ) -> Response:
        """REST framework calls this with each response, also that of an error."""
        response = super().finalize_response(request, response, *args, **kwargs)
        response[API_VERSION_HEADER] = API_VERSION
        operation = operation_of(getattr(self, self.action or "", None))
        for name, value in operation.deprecation.items():
            response[name] = ", ".join(filter(None, (response.get(name), value)))
        return response

    def respond_once(
        self, handler: Handler, request: Request, **kwargs: str
    ) -> Response:
        """The response of the handler or, if this key was used before, the stored one."""
        fingerprint = idempotency.request_fingerprint(
            str(request.method),
            request.get_full_path(),
            dialects.is_literal(request),
            request.data,
            sees_values(request),
        )
        assert request.resolver_match
        self.idempotent_request = idempotency.IdempotentRequest(
            self.owner,
            key=request.headers[idempotency.HEADER],
            operation=f"{request.method} {request.resolver_match.route}",
            fingerprint=fingerprint,
        )
        body, is_replayed = self.idempotent_request.respond(
            lambda: handler(request, **kwargs).data
        )
        return Response(
            body, headers={"Idempotency-Replayed": "true"} if is_replayed else None
        )

    def perform(
        self,
        function: Callable[..., Result],
        *arguments: Any,
        prepare: Callable[[], Any] | None = None,
        shown_once: bool = False,
        **named: Any,
    ) -> Result:
        """Run the one effect of a write: `function` with the arguments and `named`.

        With an Idempotency-Key: in one transaction that stores the key too. If the
        request is sent again, the function is not run, and the object that it made is
        returned. Without a key the function is called; its transaction is its own.

        Code after `perform()` must have no effect that may not be repeated: if a process
        dies after the write and before the response is stored, a retry runs that code
        again to rebuild the response.

        prepare: does what takes long or commits by itself; its result becomes the last
        argument without a name. shown_once: the response holds secrets and is not stored.
        """
        if self.idempotent_request:
            return self.idempotent_request.perform(
                function, *arguments, prepare=prepare, shown_once=shown_once, **named
            )
        return function(*arguments, *([prepare()] if prepare else []), **named)

    def parse_body(
        self, serializer_class: type[serializers.Serializer]
    ) -> dict[str, Any]:
        """The validated body; a broken one is a 400 that names the fields."""
        serializer = serializer_class(data=self.request.data, context=self.context)
        self.name_ignored_members(serializer)
        serializer.is_valid(raise_exception=True)
        return serializer.validated_data

    def name_ignored_members(self, serializer: serializers.BaseSerializer) -> None:
        """Name them in a header of the response, whether it is a success or not.

        An irreversible call refuses them: 400 `invalid_request`.
        """
        found = [*ignored_members.unknown_members(serializer, serializer.initial_data)]
        if self.is_irreversible:
            ignored_members.refuse_members(found)
        self.note_ignored(ignored_members.MEMBERS_HEADER, found)

    def parse_query(self, serializer_class: type[Query]) -> Query:
        """The serializer of the query parameters, valid; empty ones count as absent."""
        parameters = self.request.query_params
        data = {name: parameters[name] for name in parameters if parameters[name]}
        serializer = serializer_class(data=data)
        unknown = (name for name in parameters if name not in serializer.fields)
        self.note_ignored(ignored_members.PARAMETERS_HEADER, unknown)
        serializer.is_valid(raise_exception=True)
        return serializer

    def note_ignored(self, header: str, names: Iterable[str]) -> None:
        """Name them in the header and, if the request fails for 400, in its `errors`."""
        self.ignored += tuple(names)
        if self.ignored and (named := ignored_members.header_value(self.ignored)):
            self.headers[header] = named

    def to_response(
        self, contract: type[Contract[Shown]], obj: Shown, **context: object
    ) -> Response:
        return self.data_response(contract(obj, context=self.context | context).data)

    def change_notes(
        self, contract: type[Contract[Noted]], read: Callable[[], Noted]
    ) -> Response:
        """Change the notes of the object that `read` finds, and respond with it."""
        row, notes = read(), notes_in(self.parse_body(NotesParameters))
        if notes:
            self.perform(row.change_notes, notes)
        return self.to_response(contract, read())

    def changed_response(
        self, contract: type[Contract[Shown]], read: Callable[[], Shown]
    ) -> Response:
        """The object that `read` finds, after a call whose answer the interface leaves
        open. Below the prefixes of the original clients it is empty, as ever.
        """
        if not dialects.is_bare(self.request):
            return Response()
        return self.to_response(contract, read())

    def data_response(self, data: object) -> Response:
        """The response. What values it has is in the audit log once a day."""
        for kind in self.values_read:
            audit.record_reading(self.token, kind, by=self.request)
        return Response(data)

    def wait_for_change(
        self, contract: type[Contract[Waiting]], read: Callable[[], Waiting]
    ) -> Response:
        """The response to the object that `read` finds; with `Prefer: wait=N`, once it
        no longer waits for its peer or N seconds have passed.
        """
        preferences = self.request.headers.get("Prefer", "")
        row, seconds = long_poll.wait_for_change(read, preferences)
        response = self.to_response(contract, row)
        if seconds is not None:
            response["Preference-Applied"] = f"wait={seconds}"
        return response

    def list_response(
        self,
        contract: type[Contract[Row]],
        rows: models.QuerySet[Row],
        query_class: type[pagination.ListQuery] = pagination.ListQuery,
    ) -> Response:
        """A plain array of the newest rows, or of those asked for; `Link` names the
        next page.
        """
        query = self.parse_query(query_class)
        page = pagination.paginate(
            pagination.only_columns(rows, contract.columns), query
        )
        return self.page_response(contract, page)

    def page_response(
        self, contract: type[Contract[Row]], page: pagination.Page[Row]
    ) -> Response:
        response = self.data_response(contract.show_all(page.rows, self.context))
        if page.cursor:
            response["Link"] = pagination.next_link(self.request, page.cursor)
        return response

    @property
    def context(self) -> dict[str, object]:
        return {"request": self.request, "values_read": self.values_read}


def route(address: str, view: type[viewsets.ViewSet], **methods: str) -> URLPattern:
    """Return the URL pattern of a view. methods: its method for each HTTP method."""
    return path(address, view.as_view({**methods}))


def missing_scope(scope: str | None, as_conflict: bool = False) -> AgencyError:
    """403 `missing_scope`. as_conflict: 409."""
    kind = Conflict if as_conflict else Forbidden
    return kind("missing_scope", MISSING_SCOPE.format(scope=scope))


def lock_for_token(token: ApiKey) -> None:
    """Lock the organization of an access token, in the caller's transaction, for what
    its maker is to lose with it. 401 if it was revoked while this waited for the lock.
    """
    assert token.tenant, "an access token is an organization's"
    token.tenant.lock_row()
    if not ApiKey.live().filter(pk=token.pk).exists():
        raise exceptions.AuthenticationFailed(UNAUTHORIZED)


def get_or_404(
    rows: models.QuerySet[Row], given: str | uuid.UUID, column: str = "pk"
) -> Row:
    """Return the row of a queryset with this UUID in the column.

    404 `not_found` if no row has it, or if what is given is no UUID.
    """
    parsed = parse_uuid(given)
    row = rows.filter(**{column: parsed}).first() if parsed else None
    return or_404(row, rows.model, given)


def or_404(row: Row | None, model: type[Row], identifier: str | uuid.UUID) -> Row:
    """Return the row. 404 `not_found` if it is None. identifier: as the caller gave it."""
    if row is None:
        raise NoSuchObject(model, identifier)
    return row
