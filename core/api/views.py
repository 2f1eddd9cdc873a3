"""What all views of the API share: how they find rows, read bodies, write and respond.

Success is 200 with `application/json` whatever Accept says; the original clients break
on anything else. How they fail: core/api/exceptions.py.
"""

import uuid

from django.urls import path
from rest_framework import exceptions, viewsets
from rest_framework.response import Response

from core.api import dialects, ignored_members, long_poll, pagination
from core.api.authentication import UNAUTHORIZED
from core.api.notes import NotesParameters
from core.api.serializers import sees_values
from core.errors import Conflict, Forbidden, Invalid, NoSuchObject
from core.version import API_VERSION
from tenants import audit, idempotency
from tenants.models import ApiKey

MISSING_SCOPE = (
    "The access token does not have the scope `{scope}`, which this call needs. Use "
    "another one: owners can make it in the studio."
)

API_VERSION_HEADER = "X-Agency-Api-Version"

# What most views do with one object, for route().
DETAIL = {"get": "retrieve", "patch": "update", "delete": "destroy"}


def heavy(handler):
    """Mark a handler with long cryptography, and return it.

    It runs in threads of its own (agency/server/web.py).
    """
    handler.is_heavy = True
    return handler


class View(viewsets.ViewSet):
    """The base of all views. Those of organizations act on the wallet of their own."""

    idempotent_request = None  # set while a write with an Idempotency-Key runs
    ignored: tuple[str, ...] = ()  # members and parameters that no field reads
    is_irreversible = False  # set by check_call()

    @property
    def tenant(self):
        return self.request.user.tenant

    @property
    def owner(self):
        """Whose Idempotency-Keys these are."""
        return {"tenant": self.tenant}

    def dispatch(self, request, *args, **kwargs):
        """Respond to a call by the handler that its route names, or by an error.

        This is REST framework's own, but for check_call() and the Idempotency-Key: with
        one, the handler runs inside `respond_once`.
        """
        self.request = request = self.initialize_request(request, *args, **kwargs)
        self.headers = self.default_response_headers
        try:
            handler = self.find_handler(request)
            self.initial(request, *args, **kwargs)
            self.check_call(request, handler)
            if (
                request.method in idempotency.METHODS
                and idempotency.HEADER in request.headers
            ):
                response = self.respond_once(handler, request, *args, **kwargs)
            else:
                response = handler(request, *args, **kwargs)
        except Exception as error:
            response = self.handle_exception(error)  # raises what is no error of a call
        return self.finalize_response(request, response, *args, **kwargs)

    def find_handler(self, request):
        """The method for this call: it is in `action_map`, unless it answers 405."""
        name = request.method.lower()
        if name in self.http_method_names:
            return getattr(self, name, self.http_method_not_allowed)
        return self.http_method_not_allowed

    def check_call(self, request, handler):
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
        request.values_read = set()  # the kinds of values that the answer has
        if request.method.lower() in self.action_map:
            self.require_scope(handler.scope)
        is_delete = request.method == "DELETE"
        self.is_irreversible = getattr(handler, "is_irreversible", False) or is_delete
        if self.is_irreversible or self.is_strict_list:
            known = ignored_members.parameter_names(getattr(handler, "parameters", ()))
            ignored_members.refuse_parameters(request.query_params, known)

    @property
    def is_strict_list(self):
        """Whether a strict key asks for a list, at a path without a prefix."""
        is_list = self.request.method == "GET" and (self.action or "").startswith(
            "list"
        )
        return is_list and self.request.auth.strict and dialects.is_bare(self.request)

    def require_scope(self, scope):
        """403 `missing_scope` unless the access token of the call has this scope; 409
        below the prefixes whose clients take a 403 for success.
        """
        require_scope(self.request.auth, scope, dialects.is_wallet_prefix(self.request))

    def finalize_response(self, request, response, *args, **kwargs):
        """REST framework calls this with each response, also that of an error."""
        response = super().finalize_response(request, response, *args, **kwargs)
        response[API_VERSION_HEADER] = API_VERSION
        handler = getattr(self, self.action or "", None)
        for name, value in getattr(handler, "deprecation", {}).items():
            response[name] = ", ".join(filter(None, (response.get(name), value)))
        return response

    def respond_once(self, handler, request, *args, **kwargs):
        """The response of the handler or, if this key was used before, the stored one."""
        fingerprint = idempotency.request_fingerprint(
            request.method,
            request.get_full_path(),
            dialects.is_literal(request),
            request.data,
            sees_values(request),
        )
        self.idempotent_request = idempotency.IdempotentRequest(
            self.owner,
            key=request.headers[idempotency.HEADER],
            operation=f"{request.method} {request.resolver_match.route}",
            fingerprint=fingerprint,
        )
        body, is_replayed = self.idempotent_request.respond(
            lambda: handler(request, *args, **kwargs).data
        )
        return Response(
            body, headers={"Idempotency-Replayed": "true"} if is_replayed else None
        )

    def perform(self, function, *arguments, prepare=None, shown_once=False, **named):
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

    def parse_body(self, serializer_class):
        """The validated body; a broken one is a 400 that names the fields."""
        serializer = serializer_class(data=self.request.data, context=self.context)
        self.name_ignored_members(serializer)
        serializer.is_valid(raise_exception=True)
        return serializer.validated_data

    def name_ignored_members(self, serializer):
        """Name them in a header of the response, whether it is a success or not.

        An irreversible call refuses them: 400 `invalid_request`.
        """
        found = [*ignored_members.unknown_members(serializer, serializer.initial_data)]
        if self.is_irreversible:
            ignored_members.refuse_members(found)
        self.note_ignored(ignored_members.MEMBERS_HEADER, found)

    def parse_query(self, serializer_class):
        """The serializer of the query parameters, valid; empty ones count as absent."""
        parameters = self.request.query_params
        data = {name: parameters[name] for name in parameters if parameters[name]}
        serializer = serializer_class(data=data)
        unknown = (name for name in parameters if name not in serializer.fields)
        self.note_ignored(ignored_members.PARAMETERS_HEADER, unknown)
        serializer.is_valid(raise_exception=True)
        return serializer

    def note_ignored(self, header, names):
        """Name them in the header and, if the request fails for 400, in its `errors`."""
        self.ignored += tuple(names)
        if named := ignored_members.header_value(self.ignored):
            self.headers[header] = named

    def to_response(self, contract, obj, **context):
        return self.data_response(contract(obj, context=self.context | context).data)

    def change_notes(self, contract, read):
        """Change the notes of the object that `read` finds, and respond with it."""
        row, notes = read(), self.parse_body(NotesParameters)
        if notes:
            self.perform(row.change_notes, notes)
        return self.to_response(contract, read())

    def changed_response(self, contract, read):
        """The object that `read` finds, after a call whose answer the interface leaves
        open. Below the prefixes of the original clients it is empty, as ever.
        """
        if not dialects.is_bare(self.request):
            return Response()
        return self.to_response(contract, read())

    def data_response(self, data):
        """The response. What values it has is in the audit log once a day."""
        for kind in self.request.values_read:
            audit.record_reading(self.request.auth, kind, by=self.request)
        return Response(data)

    def wait_for_change(self, contract, read):
        """The response to the object that `read` finds; with `Prefer: wait=N`, once it
        no longer waits for its peer or N seconds have passed.
        """
        preferences = self.request.headers.get("Prefer", "")
        row, seconds = long_poll.wait_for_change(read, preferences)
        response = self.to_response(contract, row)
        if seconds is not None:
            response["Preference-Applied"] = f"wait={seconds}"
        return response

    def list_response(self, contract, rows, query_class=pagination.ListQuery):
        """A plain array of the newest rows, or of those asked for; `Link` names the
        next page.
        """
        query = self.parse_query(query_class)
        page = pagination.paginate(
            pagination.only_columns(rows, contract.columns), query
        )
        return self.page_response(contract, page)

    def page_response(self, contract, page):
        response = self.data_response(
            contract(page.rows, many=True, context=self.context).data
        )
        if page.cursor:
            response["Link"] = pagination.next_link(self.request, page.cursor)
        return response

    @property
    def context(self):
        return {"request": self.request}


def route(address, view, **methods):
    """Return the URL pattern of a view. methods: its method for each HTTP method."""
    return path(address, view.as_view(methods))


def require_scope(token, scope, as_conflict=False):
    """403 `missing_scope` unless this key may do what needs the scope. as_conflict: 409."""
    if not token.has_scope(scope):
        kind = Conflict if as_conflict else Forbidden
        raise kind("missing_scope", MISSING_SCOPE.format(scope=scope))


def lock_for_token(token):
    """Lock the organization of an access token, in the caller's transaction, for what
    its maker is to lose with it. 401 if it was revoked while this waited for the lock.
    """
    token.tenant.lock_row()
    if not ApiKey.live().filter(pk=token.pk).exists():
        raise exceptions.AuthenticationFailed(UNAUTHORIZED)


def get_or_404(rows, given, column="pk"):
    """Return the row of a queryset with this UUID in the column.

    404 `not_found` if no row has it, or if what is given is no UUID.
    """
    parsed = parse_uuid(given)
    row = rows.filter(**{column: parsed}).first() if parsed else None
    return or_404(row, rows.model, given)


def parse_uuid(text):
    """Return the UUID, or None for another text."""
    try:
        return uuid.UUID(str(text))
    except ValueError:
        return None


def or_404(row, model, identifier):
    """Return the row. 404 `not_found` if it is None. identifier: as the caller gave it."""
    if row is None:
        raise NoSuchObject(model, identifier)
    return row
