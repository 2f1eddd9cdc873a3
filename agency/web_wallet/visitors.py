"""Visitors of a link make a wallet, where the organization lets them."""

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone

from agency.core import rate_limits, transactions
from agency.core.callers import client_address
from agency.holder_pages.links import Kind, find_link
from agency.web_wallet import sessions
from agency.web_wallet.links import create_link
from agency.web_wallet.models import UNOPENED_BY_VISITOR_FOR, PersonalLink
from agency.web_wallet.pages import guard, to_pin
from tenants import audit
from wallets.models import Wallet

OF_ADDRESS = 3  # wallets an hour, in one organization
OF_ORGANIZATION = 200  # wallets a day
MAX_REMOVED = 1000  # in one run of the task


def make_wallet(request: HttpRequest, token: str) -> HttpResponse:
    """Make a wallet for the reader of a link, who then chooses its PIN.

    The wallet, its personal link and the audit entries are one transaction. 404 unless
    the link is open, no request, and its organization lets visitors make wallets. 409
    `wallet_not_kept`, 409 `quota_exceeded`, 429 `too_many_requests`.
    """
    found = find_link(token)
    if not (found and found.is_open and found.kind != Kind.REQUEST):
        raise Http404
    tenant = found.tenant
    if not tenant.visitor_wallets:
        raise Http404
    tenant.require_thawed()
    sessions.require_kept(request)
    of_address = f"{tenant.pk} {client_address(request.META)}"
    rate_limits.take_token("wallets_of_visitor", of_address, OF_ADDRESS, minutes=60)
    rate_limits.take_token(
        "wallets_of_visitors", str(tenant.pk), OF_ORGANIZATION, minutes=24 * 60
    )
    with transaction.atomic():
        wallet = Wallet.create(tenant)
        audit.record("wallet.created", wallet, by=request)
        link = create_link(wallet, by=request, made_by_visitor=True)
    response = to_pin(take=token)
    sessions.set_cookie(response, sessions.LINK_COOKIE, link.token)
    sessions.set_cookie(response, sessions.UNKEPT_COOKIE, "1", sessions.REMEMBERED)
    return response


def remove_unopened() -> int:
    """Remove the wallets of visitors who have chosen no PIN in a day: all, or many.

    Else strangers could use up the wallets that an organization may have. Nobody has
    been in them; one to which the organization has connected stays. Return how many.
    """
    end = timezone.now() - UNOPENED_BY_VISITOR_FOR
    unopened = PersonalLink.objects.filter(made_by_visitor=True, pin="")
    old = unopened.filter(
        created_at__lt=end, wallet__deleted_at=None, wallet__connections=None
    )
    removed = 0
    for link in old.select_related("wallet").order_by("created_at")[:MAX_REMOVED]:
        wallet = link.wallet
        with transactions.atomic():
            is_unopened = wallet.lock() and unopened.filter(pk=link.pk).exists()
            if is_unopened and not wallet.connections.exists():
                wallet.remove()
                removed += 1
    return removed


# POST only; an error becomes a page.
new_wallet = guard(("POST",), make_wallet, make_wallet)
