"""`POST /didcomm`: where other agents leave envelopes for any wallet here."""

from django.http import HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from agency.api import plain_problem
from agency.errors import PeerError
from connections.didcomm import transport


@csrf_exempt
@require_POST
def receive(request):
    """202 once the message is stored; the same 400 for every envelope that does not open."""
    try:
        transport.accept_envelope(request.body)
    except PeerError:
        return plain_problem(400, "cannot_open", "The envelope cannot be opened here.")
    return HttpResponse(status=202)
