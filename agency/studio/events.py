"""The studio's pages of events, and of the deliveries of each event to webhooks."""

import json
from collections import defaultdict
from typing import NamedTuple
from uuid import UUID

from django.db.models import Window
from django.db.models.functions import RowNumber
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render

from agency.studio.exchange.kinds import KINDS
from agency.studio.live_lists import render_live_list
from agency.studio.newest_first import read_page
from agency.studio.objects import list_deliveries
from agency.studio.pages import MemberRequest, member_page
from agency.studio.webhook_forms import EventFilter
from tenants.models import Tenant
from webhooks.models import Delivery, Event

WITH_PAGES = {*KINDS, "bulk"}
MAX_BADGES = 20  # deliveries of one event in the list
MAX_DELIVERIES = 200  # on the page of an event


@member_page("GET")
def show_events(request: MemberRequest) -> HttpResponse:
    form = EventFilter(request.GET)
    # Examples are shown with the webhook that somebody sent them to.
    found = Event.objects.filter(tenant=request.tenant, is_example=False)
    if form.is_valid():
        found = found.filter(**form.lookups())
    page = read_page(request, found)
    rows = with_deliveries_of_events(request.tenant, page.rows)
    context = {
        "form": form,
        "is_filtered": form.is_valid() and bool(form.lookups()),
        "rows": rows,
    }
    shown = [(row.event.pk, [one.status for one in row.deliveries]) for row in rows]
    return render_live_list(request, "studio/events.html", context, page, repr(shown))


class EventRow(NamedTuple):
    """An event with its newest deliveries. has_more: than these."""

    event: Event
    deliveries: list[Delivery]
    has_more: bool


def with_deliveries_of_events(tenant: Tenant, shown: list[Event]) -> list[EventRow]:
    found: defaultdict[UUID, list[Delivery]] = defaultdict(list)
    number = Window(RowNumber(), partition_by="event", order_by="-pk")
    rows = list_deliveries(tenant).filter(event__in=shown).annotate(number=number)
    for delivery in rows.filter(number__lte=MAX_BADGES + 1):
        found[delivery.event_id].append(delivery)
    return [
        EventRow(event, found[event.pk][:MAX_BADGES], len(found[event.pk]) > MAX_BADGES)
        for event in shown
    ]


@member_page("GET")
def show_event(request: MemberRequest, event_id: UUID) -> HttpResponse:
    found = get_object_or_404(Event.objects.filter(tenant=request.tenant), pk=event_id)
    deliveries = list(
        list_deliveries(request.tenant).filter(event=found)[: MAX_DELIVERIES + 1]
    )
    context = {
        "event": found,
        "has_page": found.object_type in WITH_PAGES and not found.is_example,
        "page_name": f"studio:{found.object_type}",
        "body": json.dumps(json.loads(found.body), indent=2),
        "deliveries": deliveries[:MAX_DELIVERIES],
        "has_more": len(deliveries) > MAX_DELIVERIES,
    }
    return render(request, "studio/event.html", context)
