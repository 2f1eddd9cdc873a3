"""`POST /didcomm`: other agents send envelopes for any wallet here."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from connections.messaging.envelopes import CONTENT_TYPE
from connections.transport import inbox
from core.api.exceptions import plain_error_response, set_retry_after
from core.errors import OrganizationFrozen, PeerError, TooOften
from core.net.callers import client_address
from core.valkey import rate_limits

CONTENT_TYPES = {
    CONTENT_TYPE,
    "application/didcomm-envelope-enc",
    "application/json",
    "application/octet-stream",
    "",
}


@csrf_exempt
@require_POST
def receive_envelope(request: HttpRequest) -> HttpResponse:
    """Store the message of an envelope and answer 202.

    200 with the reply if the sender asked for one in the response (RFC 0092). 400,
    always the same, if the envelope does not open. 429 if the sender is too fast. 503
    while the recipient's organization is being moved.
    """
    if request.content_type not in CONTENT_TYPES:
        known = ", ".join(sorted(CONTENT_TYPES - {""}))
        return plain_error_response(
            415, "unsupported_media_type", f"Send an envelope as one of {known}."
        )
    try:
        # Before opening: envelopes that do not open count too.
        address = client_address(request.META)
        rate_limits.take_token("address", address, settings.INBOX_PER_ADDRESS)
        reply = inbox.accept_envelope(request.body, address)
    except PeerError:
        return plain_error_response(
            400, "cannot_open", "The envelope cannot be opened here."
        )
    except (TooOften, OrganizationFrozen) as error:
        answer = plain_error_response(
            error.status, error.code, f"{error.message} Send it again later."
        )
        set_retry_after(answer, error)
        return answer
    if reply is None:
        empty = HttpResponse(status=202)
        del empty["Content-Type"]  # of no content
        return empty
    return HttpResponse(reply, content_type=request.content_type or CONTENT_TYPE)
