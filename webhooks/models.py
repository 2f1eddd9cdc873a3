"""The tables of this app, each in a module with what it does."""

from webhooks.deliveries import Attempt, Delivery
from webhooks.endpoints import Webhook
from webhooks.events import Event

__all__ = ["Attempt", "Delivery", "Event", "Webhook"]
