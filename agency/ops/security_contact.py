"""Where to report a weakness of this installation: `GET /.well-known/security.txt`."""

from datetime import timedelta

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

PATH = ".well-known/security.txt"
VALID_FOR = timedelta(days=180)  # a reader who kept it longer reads it again


@require_safe
def security_page(request: HttpRequest) -> HttpResponse:
    """The operator's contacts, as RFC 9116 has them. 404 without SECURITY_CONTACT."""
    if not settings.SECURITY_CONTACT:
        raise Http404
    expires = (timezone.now() + VALID_FOR).replace(microsecond=0)
    lines = [
        *(f"Contact: {one}" for one in settings.SECURITY_CONTACT),
        f"Expires: {expires:%Y-%m-%dT%H:%M:%SZ}",
        f"Canonical: {settings.PUBLIC_URL}/{PATH}",
    ]
    text = "".join(f"{line}\n" for line in lines)
    return HttpResponse(text, content_type="text/plain; charset=utf-8")
