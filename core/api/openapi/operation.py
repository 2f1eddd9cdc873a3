"""The texts of each operation in the OpenAPI document: summary, description, examples.

They stand in operations/<app>.yaml, by the document's tag and the operation's id:

    Wallets:
      createWallet:
        summary: Create a wallet
        description: ...                  # optional
        deprecated: 2026-01-31            # optional: since when
        media_type: text/event-stream     # optional: of the response's examples
        request: {<name of the example>: <body>}
        response: {<name of the example>: <body>}

`!id NAME` is an id or link of examples.py. The files stand in one folder and not beside
the views, because whoever writes for the readers of /docs edits them together with
descriptions.yaml and examples.py, and the apps share these.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import yaml
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from drf_spectacular.utils import OpenApiExample, extend_schema

from core.api.openapi import examples
from core.api.openapi.descriptions import SafeLoader
from core.api.views import Operation
from tenants.models import Scope

FOLDER = Path(__file__).parent / "operations"
# What a key with each scope may do: the summaries of the operations.
SUMMARIES: dict[Scope, set[str]] = {scope: set() for scope in Scope}
Handler = TypeVar("Handler", bound=Callable[..., Any])


class Texts(NamedTuple):
    """What the document says about one operation."""

    tag: str
    summary: str
    description: str | None = None
    deprecated: date | None = None
    media_type: str | None = None
    request: dict[str, Any] = {}
    response: dict[str, Any] = {}

    @property
    def examples(self) -> list[OpenApiExample]:
        requests = [
            OpenApiExample(name, value, request_only=True)
            for name, value in self.request.items()
        ]
        responses = [
            OpenApiExample(name, value, response_only=True, media_type=self.media_type)
            for name, value in self.response.items()
        ]
        return requests + responses


class TextLoader(SafeLoader):
    """YAML with `!id`, and without the silent loss of a key that is written twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        keys = [key.value for key, _ in node.value if key.value != "<<"]
        if twice := {key for key in keys if keys.count(key) > 1}:
            raise ImproperlyConfigured(f"{node.start_mark}: written twice: {twice}")
        return super().construct_mapping(node, deep)

    def construct_id(self, node: yaml.ScalarNode) -> str:
        try:
            return getattr(examples, node.value)
        except AttributeError:
            raise ImproperlyConfigured(
                f"{node.start_mark}: examples.py has no {node.value}"
            ) from None


TextLoader.add_constructor("!id", TextLoader.construct_id)


@cache
def all_texts() -> dict[str, Texts]:
    texts: dict[str, Texts] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        added = read_texts(path)
        if twice := texts.keys() & added.keys():
            raise ImproperlyConfigured(f"{path}: in another file too: {twice}")
        texts |= added
    return texts


def read_texts(path: Path) -> dict[str, Texts]:
    """The texts of one file. A mistake in it is an ImproperlyConfigured, at start."""
    texts: dict[str, Texts] = {}
    with path.open(encoding="utf-8") as file:
        tags = yaml.load(file, TextLoader)
    for tag, operations in tags.items():
        for operation_id, members in operations.items():
            if operation_id in texts:
                raise ImproperlyConfigured(f"{path}: {operation_id} has two tags")
            try:
                texts[operation_id] = Texts(tag, **members)
            except TypeError as error:  # a member is missing or unknown
                message = f"{path}: {operation_id}: {error}"
                raise ImproperlyConfigured(message) from None
    return texts


def deprecation_headers(operation_id: str, texts: Texts) -> dict[str, str]:
    """The headers `Deprecation` (RFC 9745) and `Link` of a deprecated operation."""
    if not texts.deprecated:
        return {}
    since = datetime.combine(texts.deprecated, time(), UTC)
    page = f"{settings.PUBLIC_URL}/docs#/{quote(texts.tag)}/{operation_id}"
    return {
        "Deprecation": f"@{since.timestamp():.0f}",
        "Link": f'<{page}>; rel="deprecation"; type="text/html"',
    }


@cache
def form_or_json(serializer: Any) -> dict[str, Any]:
    """The request of an operation that reads its members as a form or as JSON.

    Each is a schema of its own: generated clients tell them apart by the body's class.
    """
    name = serializer.__name__.replace("Parameters", "Form")
    form = type(name, (serializer,), {})
    return {"multipart/form-data": form, "application/json": serializer}


def operation(
    operation_id: str,
    scope: Scope | None,
    *,
    request: Any = None,
    response: Any = None,
    parameters: list[Any] | None = None,
    irreversible: bool = False,
) -> Callable[[Handler], Handler]:
    """Documents a handler of a view, and declares the scope that a call of it needs.

    scope: of the access token (View.check_call() asks for it); None where none is sent.
    request, response: a serializer or schema; None: no body.
    parameters: serializers of the query, or OpenApiParameters.
    irreversible: refuses what it does not read, as every DELETE does (View.check_call).
    """
    texts = all_texts().get(operation_id)
    if texts is None:
        raise ImproperlyConfigured(
            f"There are no texts of {operation_id}. Add it to a file in {FOLDER}."
        )
    description, extensions = texts.description, {}
    if scope:
        extensions["x-scope"] = str(scope)
        words = f"An access token needs the scope `{scope}`."
        description = f"{description} {words}" if description else words
    document = extend_schema(
        operation_id=operation_id,
        tags=[texts.tag],
        summary=texts.summary,
        description=description,
        deprecated=bool(texts.deprecated) or None,
        request=request,
        responses=response,
        parameters=parameters,
        examples=texts.examples,
        extensions=extensions,
    )

    def declare(handler: Handler) -> Handler:
        if scope:
            SUMMARIES[scope].add(texts.summary)
        declared: Any = document(handler)
        declared.operation = Operation(
            operation_id,
            scope,
            parameters or [],
            irreversible,
            deprecation_headers(operation_id, texts),
        )
        return declared

    return declare
