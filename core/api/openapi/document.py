"""`GET /openapi.json`, made once for each process, and its page at /docs: Swagger UI.

PAGE_POLICY allows no scripts inside the page.
"""

import gzip
import json
from functools import cache
from hashlib import sha256
from typing import NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import condition, require_safe
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularSwaggerView

docs_page = SpectacularSwaggerView.as_view(url_name="openapi")


class Document(NamedTuple):
    etag: str
    plain: bytes
    compressed: bytes


@cache
def document() -> Document:
    """The schema of the whole API. Making it takes some 200 ms of CPU."""
    schema = SchemaGenerator().get_schema(request=None, public=True)
    plain = json.dumps(schema, ensure_ascii=False, separators=(",", ":")).encode()
    etag = f'"{sha256(plain).hexdigest()[:32]}"'
    return Document(etag, plain, gzip.compress(plain, mtime=0))


@require_safe
@condition(etag_func=lambda request: document().etag)
def serve_document(request: HttpRequest) -> HttpResponse:
    accepted = request.headers.get("Accept-Encoding", "")
    is_compressed = "gzip" in accepted
    body = document().compressed if is_compressed else document().plain
    answer = HttpResponse(body, content_type="application/vnd.oai.openapi+json")
    if is_compressed:
        answer["Content-Encoding"] = "gzip"
    answer["Cache-Control"] = (
        "no-cache"  # kept by the client, and asked for by its ETag
    )
    patch_vary_headers(answer, ["Accept-Encoding"])
    return answer


def example_ids(request: HttpRequest) -> JsonResponse:
    """The demo organization's ids by those of examples.py; empty if no demo ran here."""
    try:
        ids = json.loads(settings.DEMO_FILE.read_text()).get("examples", {})
    except (OSError, ValueError):
        ids = {}
    return JsonResponse(ids)
