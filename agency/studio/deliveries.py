"""Deliveries to webhooks, as the pages of events, exchanges and webhooks show them."""

from typing import Any

from agency.words.messages import DELIVERY_BADGES
from tenants.models import Tenant
from webhooks.api.serializers import SHOWN_STATUS
from webhooks.models import Delivery


def list_deliveries(tenant: Tenant) -> Any:
    """Return the deliveries to webhooks that still exist, newest first."""
    rows = Delivery.objects.filter(webhook__tenant=tenant)
    return rows.select_related("webhook", "event").order_by("-pk")


def add_badge(delivery: Any) -> Any:
    """Add the status as text and the CSS class of its badge to a delivery."""
    delivery.shown_status = SHOWN_STATUS[delivery.status]
    delivery.badge = DELIVERY_BADGES[delivery.status]
    return delivery
