"""The page of one organization: what needs attention, its first steps and its keys.

Two views render it: the page itself, and a form for a new key that has errors.
"""

from collections import Counter
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from agency.studio.attention import list_attention_items
from agency.studio.checklist import checklist_of
from agency.studio.forms import KeyForm
from tenants.models import ApiKey, Membership, Tenant

MAX_ENDED_KEYS = 50  # on the page


def render_organization(
    request: HttpRequest,
    membership: Membership,
    form: KeyForm | None = None,
) -> HttpResponse:
    tenant = membership.tenant
    keys = list(list_keys(tenant))
    context = {
        "membership": membership,
        "tenant": tenant,
        "did": tenant.wallets.get(is_organization=True).did,
        "attention_items": list_attention_items(tenant),
        "checklist": checklist_of(membership),
        "live": [key for key in keys if key.is_live],
        "ended": [key for key in keys if not key.is_live][:MAX_ENDED_KEYS],
        "kinds": [kind for kind in ApiKey.Kind if membership.may_issue(kind)],
        "form": form or key_form(membership),
    }
    return render(request, "studio/organization.html", context)


def list_keys(tenant: Tenant) -> QuerySet[ApiKey]:
    """Return the keys of an organization and its provider account, newest first.

    Provider keys have access to all organizations of the account. So they are left out
    for organizations that were created with such a key.
    """
    owners = Q(tenant=tenant)
    if not tenant.made_by_provider:
        owners |= Q(provider=tenant.provider)
    return (
        ApiKey.objects.filter(owners)
        .select_related("tenant", "provider")
        .order_by("-pk")
    )


def key_form(membership: Membership, data: Any = None) -> KeyForm:
    """Return a form with the kinds of keys that this person may create."""
    Kind = ApiKey.Kind
    tenant = membership.tenant
    kinds = [Kind.ACCESS_TOKEN, Kind.SUBSCRIPTION_KEY]
    if not tenant.made_by_provider and membership.may_issue(Kind.PROVIDER_KEY):
        kinds.append(Kind.PROVIDER_KEY)
    live = Counter(key.kind for key in list_keys(tenant) if key.is_live)
    return KeyForm(data, kinds=kinds, live=live)
