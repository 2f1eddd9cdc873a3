"""The models of this app. Each is defined in the module of its feature."""

from webhooks.delivery.endpoints import Webhook
from webhooks.delivery.models import Attempt, Delivery
from webhooks.events.models import Event, FeedEpoch, FeedSwitch

__all__ = ["Attempt", "Delivery", "Event", "FeedEpoch", "FeedSwitch", "Webhook"]
