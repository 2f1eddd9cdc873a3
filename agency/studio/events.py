"""The studio's pages of events: what happened, and what became of the calls that told of it."""

import json
from collections import defaultdict
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from agency.studio.views import membership_in, page
from agency.studio.webhook_forms import EventFilter
from tenants.models import Tenant
from webhooks.api.serializers import SHOWN_STATUS
from webhooks.models import Delivery, Event

SHOWN = 50
BADGES = {
    Delivery.Status.DONE: "good",
    Delivery.Status.PENDING: "soon",
    Delivery.Status.UNCONFIRMED: "soon",
    Delivery.Status.EXHAUSTED: "bad",
}


@page("GET", "HEAD")
def events(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    tenant = membership_in(request, tenant_id).tenant
    form = EventFilter(request.GET)
    found = Event.objects.filter(tenant=tenant, is_example=False)
    if form.is_valid():
        found = found.filter(**form.lookups())
    rows = list(found.order_by("-pk")[: SHOWN + 1])
    shown, more = rows[:SHOWN], len(rows) > SHOWN
    context = {
        "tenant": tenant,
        "tab": "events",
        "form": form,
        "is_filtered": form.is_valid() and bool(form.lookups()),
        "rows": with_deliveries(tenant, shown),
        "older": older(request, shown[-1]) if more else "",
    }
    return render(request, "studio/events.html", context)


def older(request: HttpRequest, last: Event) -> str:
    """The query of the page behind this event."""
    query = request.GET.copy()
    query["before"] = str(last.pk)
    return query.urlencode()


def with_deliveries(tenant: Tenant, shown: list[Event]) -> list[dict[str, Any]]:
    found = defaultdict(list)
    for delivery in deliveries_of(tenant).filter(event__in=shown):
        found[delivery.event_id].append(look(delivery))
    return [{"event": event, "deliveries": found[event.pk]} for event in shown]


def deliveries_of(tenant: Tenant) -> Any:
    """Those of webhooks that still are."""
    rows = Delivery.objects.filter(webhook__tenant=tenant)
    return rows.select_related("webhook", "event").order_by("-pk")


def look(delivery: Delivery) -> Delivery:
    """The delivery with its status in words, and how it looks."""
    delivery.shown_status = SHOWN_STATUS[delivery.status]
    delivery.badge = BADGES[delivery.status]
    return delivery


@page("GET", "HEAD")
def event(request: HttpRequest, tenant_id: UUID, event_id: UUID) -> HttpResponse:
    tenant = membership_in(request, tenant_id).tenant
    found = get_object_or_404(Event.objects.filter(tenant=tenant), pk=event_id)
    context = {
        "tenant": tenant,
        "tab": "events",
        "event": found,
        "body": json.dumps(json.loads(found.body), indent=2),
        "deliveries": [look(one) for one in deliveries_of(tenant).filter(event=found)],
    }
    return render(request, "studio/event.html", context)
