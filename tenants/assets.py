"""Public pictures: taken from a form, kept under random names, served to everybody."""

import secrets
from typing import Any

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from rest_framework.parsers import MultiPartParser

from agency.core.errors import Conflict
from tenants import images, quotas
from tenants.models import Asset, Provider

FOLDER = "assets"
CONTENT_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "webp": "image/webp",
    "gif": "image/gif",
}
HEADERS = {
    "Cache-Control": "public, max-age=31536000, immutable",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
}


class PictureFormParser(MultiPartParser):
    """Keeps the bytes of a part without file name, which Django reads as text: each as U+00XX."""

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,
        parser_context: dict[str, Any] | None = None,
    ) -> Any:
        return super().parse(
            stream, media_type, (parser_context or {}) | {"encoding": "latin-1"}
        )


def uploaded(data: Any) -> bytes:
    """The bytes of the form field `uploadedFiles`, sent as a file or as a field."""
    given = data.get("uploadedFiles") if isinstance(data, dict) else None
    if isinstance(given, str):
        given = given.encode("latin-1", "replace")
    elif hasattr(given, "read"):
        given = given.read(settings.MAX_IMAGE_BYTES + 1)
    if not isinstance(given, bytes):
        raise images.bad_image("There is no picture.")
    return given


@transaction.atomic
def store(provider: Provider, data: bytes) -> Asset:
    """Keeps a picture of a provider account."""
    written, ending = images.rewrite(data)
    provider = Provider.objects.select_for_update(no_key=True).get(pk=provider.pk)
    if provider.assets.count() >= Asset.LIMIT:
        raise Conflict(
            "asset_limit", f"You have {Asset.LIMIT} pictures; no more are kept."
        )
    quotas.require_room_for_picture(provider, len(written))
    name = f"{secrets.token_urlsafe(16)}.{ending}"
    default_storage.save(place(name), ContentFile(written))
    return provider.assets.create(name=name, size=len(written))


def place(name: str) -> str:
    return f"{FOLDER}/{name}"


@require_safe
def serve(request: HttpRequest, name: str, ending: str) -> HttpResponse:
    """A picture, which never changes."""
    try:
        with default_storage.open(place(name)) as file:
            return HttpResponse(
                file.read(), content_type=CONTENT_TYPES[ending], headers=HEADERS
            )
    except FileNotFoundError:
        raise Http404 from None
