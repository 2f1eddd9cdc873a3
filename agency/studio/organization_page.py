"""The page of one organization: its overview, what it is and its keys.

Views render it: the page itself, the answer to a new organization, with its keys, and
a form for a new key that has errors.
"""

from collections import Counter
from typing import Any, TypedDict

from django.db.models import QuerySet
from django.http import HttpResponse, QueryDict
from django.shortcuts import render

from agency.studio.forms import KeyForm
from agency.studio.menu import Menu
from agency.studio.overview import overview_context
from agency.studio.pages import MemberRequest
from tenants.models import ApiKey, Membership, Scope, Tenant
from tenants.models.names import confirms_email
from wallets.models import Wallet

MAX_ENDED_KEYS = 50  # on the page


class FirstKeys(TypedDict):
    """What first_keys.html shows of a new organization."""

    secrets: list[dict[str, str]]
    example: str


def render_organization(
    request: MemberRequest,
    form: KeyForm | None = None,
    first_keys: FirstKeys | None = None,
) -> HttpResponse:
    """Render the page of an organization, with its overview and its keys.

    form: of a new key, with its errors. first_keys: of a new organization.
    """
    keys: list[Any] = list(list_keys(request.tenant))
    for key in keys:
        if key.made_by:
            key.made_by.has_confirmed_email = key.has_confirmed_maker
        key.is_rotatable = key.can_rotate and request.membership.may_rotate(key)
    own = Wallet.of_organization(request.tenant)
    context = overview_context(request, own) | {
        "menu": Menu(request, "organization", request.tenant.pk),
        "did": own.issuer_did,
        "live": [key for key in keys if key.is_live],
        "ended": [key for key in keys if not key.is_live][:MAX_ENDED_KEYS],
        "kinds": [kind for kind in ApiKey.Kind if request.membership.may_issue(kind)],
        "form": form or key_form(request.membership, keys=keys),
    }
    return render(
        request, "studio/organization.html", {**context, **(first_keys or {})}
    )


def list_keys(tenant: Tenant) -> QuerySet[ApiKey]:
    """Return the keys of an organization and its provider account, newest first."""
    return (
        ApiKey.objects.filter(ApiKey.is_of(tenant))
        .select_related("tenant", "provider", "made_by")
        .annotate(has_confirmed_maker=confirms_email("made_by"))
        .order_by("-pk")
    )


def key_form(
    membership: Membership,
    data: QueryDict | None = None,
    keys: list[ApiKey] | None = None,
) -> KeyForm:
    """Return a form with the kinds of keys that this person may create.

    keys: those of the organization, if they are read already.
    """
    Kind = ApiKey.Kind
    tenant = membership.tenant
    kinds = [Kind.ACCESS_TOKEN, Kind.SUBSCRIPTION_KEY]
    if not tenant.made_by_provider and membership.may_issue(Kind.PROVIDER_KEY):
        kinds.append(Kind.PROVIDER_KEY)
    known = list_keys(tenant) if keys is None else keys
    live = Counter(key.kind for key in known if key.is_live)
    scopes = [scope for scope in Scope.values if membership.may_give({scope})]
    return KeyForm(data, kinds=kinds, scopes=scopes, live=live)
