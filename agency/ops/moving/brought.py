"""What an import has brought that gives somebody access."""

from typing import NamedTuple

from django.db.models import Q, QuerySet

from agency.holders.wallet.models import PersonalLink
from tenants.models import ApiKey, Membership, Tenant
from verifications.models import Kiosk
from webhooks.models import Webhook


class Brought(NamedTuple):
    """Those that are still there. keys: live ones, with those of its account."""

    keys: QuerySet[ApiKey]
    webhooks: QuerySet[Webhook]
    kiosks: QuerySet[Kiosk]
    links: QuerySet[PersonalLink]
    members: QuerySet[Membership]


def find_brought(tenant: Tenant) -> Brought:
    """Find what an imported organization had when it came: nothing of it is younger."""
    own, old = Q(tenant=tenant), Q(created_at__lte=tenant.imported_at)
    account = Q(provider=tenant.provider_id)
    return Brought(
        keys=ApiKey.live().filter(own | account, old).order_by("pk"),
        webhooks=Webhook.objects.filter(own, old).order_by("pk"),
        kiosks=Kiosk.objects.filter(own, old).order_by("pk"),
        links=PersonalLink.objects.filter(own, old).order_by("pk"),
        members=Membership.objects.filter(own, old).order_by("pk"),
    )
