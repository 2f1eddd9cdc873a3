"""The tables of this app, each in a module with what it does."""

from webhooks.delivery.endpoints import Webhook
from webhooks.delivery.models import Attempt, Delivery
from webhooks.events.models import Event

__all__ = ["Attempt", "Delivery", "Event", "Webhook"]
