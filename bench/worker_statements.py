"""What workers run every few seconds or minutes, by name, for bench/fill.py.

Nothing is left to do but to find that, except in the four queues, which have due rows.
"""

import agency.holders.links.closed_links
import connections.link_expiry
import connections.retention
import tenants.idempotency
import tenants.retention
import webhooks.retention
from agency.mails import notices
from agency.ops import queues
from connections.messaging.models import InboundMessage, OutboundMessage
from connections.transport import posting_queue, return_route
from credentials.models import CredentialDefinition, Publication
from credentials.tasks import finish_what_was_left_behind
from tenants.models import Tenant
from webhooks.delivery import claim, recovery
from webhooks.events.feed import FROM_NOW, events_of, parse_cursor, read_page


def read_feed():
    """A page of the feed at its end, as the stream reads it."""
    tenant = Tenant.objects.order_by("pk").first()
    read_page(events_of(tenant), parse_cursor(FROM_NOW), 100)


WORK = {
    "claim messages to wallets here": lambda: require_claimed(
        OutboundMessage.claim(10, is_hosted=True)
    ),
    "claim messages to other agents": lambda: require_claimed(
        posting_queue.claim_due(16, [])
    ),
    "claim received messages": lambda: require_claimed(
        InboundMessage.claim(10, origin=None)
    ),
    "claim webhook calls": lambda: require_claimed(claim.claim_due(16, 4)),
    "maintain webhooks": recovery.run_maintenance,
    "send notices": notices.send_due_notices,
    "read the end of the feed": read_feed,
    "figures of the queues": queues.read_queues,
    "finish what was left behind": finish_what_was_left_behind,
    "definitions that need a registry": lambda: list(
        CredentialDefinition.nearly_full()
    ),
    "claim publications": lambda: Publication.claim(1),
    "delete old events": webhooks.retention.delete_old_events,
    "delete old messages": connections.retention.forget_messages,
    "delete old replies": return_route.forget_old_replies,
    "delete old idempotency keys": tenants.idempotency.delete_old_keys,
    "delete old sessions": tenants.retention.delete_expired_sessions,
    "delete pictures without an owner": tenants.retention.delete_ownerless_pictures,
    "end expired links": connections.link_expiry.end_expired_links,
    "delete old links": agency.holders.links.closed_links.forget_closed_links,
}


def require_claimed(rows):
    if not rows:
        raise RuntimeError("no row is due: the measurement would say nothing")
