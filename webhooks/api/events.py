"""Events in the credentials API: a feed with cursors, and a stream."""

import json

from django.conf import settings
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
)
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api import hints
from core.api.exceptions import error_response
from core.api.openapi.operation import operation
from core.api.pagination import LINK, MAX_LIMIT, next_link
from core.api.serializers import Contract, IntegerField, SharedFields
from core.api.views import View
from core.text.bounded_json import JSON
from tenants.models import Scope
from webhooks.api.serializers import MESSAGE_TYPES
from webhooks.events import feed
from webhooks.models import Event

STREAM = "events/stream"  # its path below each prefix


LAST_EVENT_ID = OpenApiParameter(
    "Last-Event-ID",
    location=OpenApiParameter.HEADER,
    description="The cursor of the last message that arrived; it goes before `after`.",
)


class Filters(SharedFields):
    """Which events. The `source` of a filter is the lookup that it sets."""

    messages = hints.QUERY_MESSAGES
    messageType = serializers.ChoiceField(MESSAGE_TYPES, source="type", required=False)
    objectId = serializers.CharField(source="object_id", max_length=128, required=False)


class FeedQuery(Filters):
    after = serializers.CharField(
        default=feed.FROM_START,
        max_length=500,
        help_text="A cursor; `start`: the oldest event that is kept; "
        "`now`: what comes from now.",
    )
    limit = IntegerField(default=MAX_LIMIT, min_value=1, max_value=MAX_LIMIT)


class StreamQuery(Filters):
    """`Last-Event-ID`, which a client sends that comes again, goes before `after`."""

    after = serializers.CharField(default=feed.FROM_NOW, max_length=500)


class EventContract(Contract[Event]):
    """What happened. `body` is what webhooks are sent; `cursor` is the place behind it."""

    eventId = serializers.CharField(source="pk")
    messageType = serializers.ChoiceField(MESSAGE_TYPES, source="type")
    objectType = serializers.CharField(source="object_type")
    objectId = serializers.CharField(source="object_id")
    sequence = serializers.IntegerField(
        help_text="Counts the events of the object, from 1."
    )
    createdAtUtc = serializers.DateTimeField(source="created_at")
    cursor = serializers.CharField()
    body = serializers.JSONField()

    def get_cursor(self, event: Event) -> str:
        return feed.cursor_for(feed.position_of(event))

    def get_body(self, event: Event) -> JSON:
        return json.loads(event.body)


class Events(View):
    """All that happened in the organization, whether a webhook wants it or not."""

    @operation(
        "listEvents",
        Scope.READ,
        response=EventContract(many=True),
        parameters=[FeedQuery, LINK],
    )
    def list(self, request: Request) -> Response:
        # Without `after` and `limit` these are the filters, as lookups of Event.
        wanted = dict(self.parse_query(FeedQuery).validated_data)
        start = feed.parse_cursor(wanted.pop("after"), self.tenant)
        limit = wanted.pop("limit")
        page = feed.read_page(
            feed.events_of(self.tenant).filter(**wanted), start, limit
        )
        answer = Response(EventContract.show_all(page.events))
        # Also on the last page: later events come after this cursor.
        answer["Link"] = next_link(request, feed.cursor_for(page.position), "after")
        return answer

    @operation(
        "streamEvents",
        Scope.READ,
        response={
            (200, "text/event-stream"): OpenApiResponse(
                str, "Open until either side ends it."
            ),
        },
        parameters=[StreamQuery, LAST_EVENT_ID],
    )
    def stream(self, request: Request) -> Response:
        place = settings.STREAM_URL + request.path_info
        message = f"The stream of events is served at {place}, by a process of its own."
        if settings.STREAM_URL == settings.PUBLIC_URL:
            message = (
                "The proxy must lead this path to the process that serves streams, "
                "see docs/operations.md. Meanwhile GET /events tells the same."
            )
        answer = error_response(421, "stream_elsewhere", message)
        answer["Link"] = f'<{place}>; rel="alternate"; type="text/event-stream"'
        return answer
