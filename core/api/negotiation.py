"""Request bodies are JSON under any content type; responses are JSON whatever Accept
says.
"""

import json

from rest_framework import exceptions
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer

from core.text import bounded_json

FORM_TYPES = ("application/x-www-form-urlencoded", "multipart/form-data")


class AlwaysJSON(BaseContentNegotiation):
    def select_parser(self, request, parsers):
        content_type = (request.content_type or "").partition(";")[0].strip().lower()
        for parser in parsers:
            if parser.media_type == content_type:
                return parser
        return next(parser for parser in parsers if isinstance(parser, JSONParser))

    def select_renderer(self, request, renderers, format_suffix=None):
        return renderers[0], renderers[0].media_type


class JSONParser(BaseParser):
    """JSON under any content type; an empty body and `null` mean `{}`."""

    media_type = "application/json"

    def parse(self, stream, media_type=None, parser_context=None):
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

    def render(self, data, accepted_media_type=None, renderer_context=None):
        if data is None:
            return b""
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
