"""Pictures over HTTP: reading an upload, and serving stored ones publicly."""

from collections.abc import Mapping
from typing import IO

from django.conf import settings
from django.core.files.storage import default_storage
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe
from rest_framework.parsers import DataAndFiles, MultiPartParser

from tenants.pictures import bad_image, storage_path

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
    """Keeps the bytes of a part that has no file name.

    Django decodes such parts as text. In Latin-1 each byte is one character (U+00XX).
    """

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, object] | None = None,
    ) -> DataAndFiles:
        context = {**(parser_context or {}), "encoding": "latin-1"}
        return super().parse(stream, media_type, context)


def read_upload(data: object) -> bytes:
    """The bytes of the form field `uploadedFiles`, sent as a file or as a field."""
    upload = data.get("uploadedFiles") if isinstance(data, dict) else None
    if isinstance(upload, str):
        return upload.encode("latin-1", "replace")
    if upload is not None and hasattr(upload, "read"):
        upload = upload.read(settings.MAX_IMAGE_BYTES + 1)
    if not isinstance(upload, bytes):
        raise bad_image("There is no picture.")
    return upload


@require_safe
def serve_picture(request: HttpRequest, name: str, ending: str) -> HttpResponse:
    """A stored picture. It never changes, so it may be cached for ever."""
    try:
        with default_storage.open(storage_path(name)) as file:
            content = file.read()
    except FileNotFoundError:
        raise Http404 from None
    return HttpResponse(content, content_type=CONTENT_TYPES[ending], headers=HEADERS)
