"""What a did:webvh made here publishes: its log and resources. Readable by anyone.

The addresses are those of the specification, so they stand in no document of the API.
"""

import re

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from credentials.ledgers.webvh import own_did, served_logs
from credentials.models import WebvhDid, WebvhResource

SEGMENT, DIGEST = r"[0-9a-f]{8}", r"zQm[1-9A-HJ-NP-Za-km-z]{40,50}"
NONCE = r"[A-Za-z0-9_-]{32}"
# Readers ask again in any case, and a registry changes with each of its lists.
SHORTLY = "public, max-age=1"


@require_safe
def log(request: HttpRequest, segment: str) -> HttpResponse:
    """The log of a DID: a line of JSON for each entry."""
    require_form(SEGMENT, segment)
    rows = WebvhDid.objects.filter(segment=segment, host=host_of(request))
    found = rows.values_list("did", "log").first()
    if not found:
        raise Http404
    did, text = found
    served_logs.note(did, text)
    return respond(text, "text/jsonl")


@require_safe
def resource(request: HttpRequest, segment: str, digest: str) -> HttpResponse:
    """A schema, definition, registry or status list, as it is signed now."""
    require_form(SEGMENT, segment)
    require_form(DIGEST, digest)
    rows = WebvhResource.objects.filter(
        digest=digest, did__segment=segment, did__host=host_of(request)
    )
    document = rows.values_list("document", flat=True).first()
    if document is None:
        raise Http404
    return respond(document, "application/json")


@require_safe
def check(request: HttpRequest, nonce: str) -> HttpResponse:
    """Show to this installation that a request for the host comes to it."""
    require_form(NONCE, nonce)
    return respond(own_did.answer_check(host_of(request), nonce), "text/plain")


def respond(body: str, content_type: str) -> HttpResponse:
    headers = {"Cache-Control": SHORTLY}
    return HttpResponse(body, content_type=content_type, headers=headers)


def require_form(pattern: str, text: str) -> None:
    if not re.fullmatch(pattern, text):
        raise Http404


def host_of(request: HttpRequest) -> str:
    """The name by which this was asked for: each DID is at its own host only."""
    return request.get_host().partition(":")[0].lower()
