"""Request bodies are JSON under any content type; responses are JSON whatever Accept
says. What has pages too asks wants_html().
"""

import json
from collections.abc import Iterable, Mapping
from typing import IO

from django.http import HttpRequest
from rest_framework import exceptions
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from core.text import bounded_json
from core.text.bounded_json import JSON

FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")


def wants_html(request: HttpRequest) -> bool:
    """Return whether the client accepts text/html by name, as browsers do."""
    return "text/html" in request.headers.get("Accept", "").lower()


class AlwaysJSON(BaseContentNegotiation):
    def select_parser(
        self, request: Request, parsers: Iterable[BaseParser]
    ) -> BaseParser:
        content_type = (request.content_type or "").partition(";")[0].strip().lower()
        for parser in parsers:
            if parser.media_type == content_type:
                return parser
        return next(parser for parser in parsers if isinstance(parser, JSONParser))

    def select_renderer(
        self,
        request: Request,
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type


class JSONParser(BaseParser):
    """JSON under any content type; an empty body and `null` mean `{}`."""

    media_type = "application/json"

    def parse(  # type: ignore[override]  # any JSON, not only an object
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, object] | None = None,
    ) -> JSON:
        data = stream.read()
        try:
            value = bounded_json.loads(data) if data.strip() else {}
        except bounded_json.BadJSON as error:
            message = f"The body is {error}."
            kind = (media_type or "").partition(";")[0].strip().lower()
            if kind in FORM_TYPES:
                message += f" It came as {kind}: send JSON, with Content-Type: application/json."
            raise exceptions.ParseError(message, "malformed_json") from None
        return {} if value is None else value


class JSONRenderer(BaseRenderer):
    media_type = "application/json"
    format = "json"
    charset = None

    def render(
        self,
        data: JSON,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, object] | None = None,
    ) -> bytes:
        if data is None:
            return b""
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
