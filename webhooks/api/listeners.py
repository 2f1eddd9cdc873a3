"""Who may listen to the stream of events, and from which place."""

from django.core.exceptions import SuspiciousOperation
from django.core.handlers.asgi import ASGIRequest
from django.db import DatabaseError, InterfaceError
from rest_framework.exceptions import AuthenticationFailed, ValidationError

from core.api.authentication import TenantAuthentication
from core.api.exceptions import errors_as_text, flatten_errors
from core.api.views import missing_scope
from core.database.base import is_outage
from core.errors import DatabaseAway, Invalid, Unauthorized
from tenants.models import Scope
from webhooks.api.events import StreamQuery
from webhooks.events import feed
from webhooks.events.stream import Listener


def authenticate_listener(request: ASGIRequest) -> Listener:
    """Authenticate a client and parse its query.

    Must run in a thread, because it reads the database. Raises Unauthorized, Invalid
    for the query, the errors of feed.parse_cursor(), Invalid `database_restored` for a
    cursor from before a restore, DatabaseAway, and what the authentication raises, such
    as for an organization that is frozen.
    """
    try:
        caller, token = TenantAuthentication().authenticate(request)
        if not token.has_scope(Scope.READ):
            raise missing_scope(Scope.READ)
        # An empty parameter counts as absent.
        given = {name: value for name, value in request.GET.items() if value}
        if last := request.headers.get("Last-Event-ID"):
            given["after"] = last
        query = StreamQuery(data=given)
        query.is_valid(raise_exception=True)
        wanted = dict(query.validated_data)
        # What is left in `wanted` are the filters.
        start = feed.parse_cursor(wanted.pop("after"), caller.tenant)
        # Here, while it can still be refused with a status.
        feed.current_horizon().require_epoch_of(start)
    except AuthenticationFailed as error:
        raise Unauthorized("unauthorized", str(error.detail)) from error
    except ValidationError as error:
        errors = flatten_errors(error.detail)
        raise Invalid("invalid_request", errors_as_text(errors), errors) from error
    except SuspiciousOperation as error:  # of request.GET: too many parameters
        raise Invalid("invalid_request", "The query cannot be read.") from error
    except (DatabaseError, InterfaceError) as error:
        if not is_outage(error):
            raise
        raise DatabaseAway from error
    return Listener(caller.tenant, [key.pk for key in caller.keys], start, wanted)
