"""Visitors of a link make a wallet, where the organization lets them."""

from uuid import UUID

from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone

from agency.holders.links.links import Kind, find_link
from agency.holders.wallet import sessions
from agency.holders.wallet.links import create_link
from agency.holders.wallet.models import UNOPENED_BY_VISITOR_FOR, PersonalLink
from agency.holders.wallet.pages import guard, to_pin
from connections.models import Connection
from core.api.views import heavy
from core.errors import Conflict
from core.valkey import rate_limits
from core.work import transactions
from tenants import audit
from tenants.models import Tenant
from wallets.models import Wallet

BEGUN_AGAIN = 10  # in a minute, by a link for one person
MAX_REMOVED = 1000  # in one run of the task


def make_wallet(request: HttpRequest, token: str) -> HttpResponse:
    """Make a wallet for the reader of a link, who then chooses its PIN.

    The wallet, its personal link and the audit entries are one transaction. A link that
    one person may use makes one wallet, and leads to it again until its PIN is chosen;
    of others, the organization sets how many a day. 404 unless the link is open, no
    request, and its organization lets visitors make wallets. 409 `wallet_not_kept`,
    409 `wallet_made`, 409 `quota_exceeded`, 429 `too_many_requests`.
    """
    found = find_link(token)
    if not (found and found.is_open and found.kind != Kind.REQUEST):
        raise Http404
    tenant, connection = found.tenant, found.connection
    if not (tenant.visitor_wallets and connection):
        raise Http404
    tenant.require_thawed()
    sessions.require_kept(request)
    if connection.multi_party:
        a_day = tenant.visitor_wallets_a_day
        rate_limits.take_token(
            "wallets_of_link", str(connection.pk), a_day, minutes=24 * 60
        )
        link = create_wallet(request, tenant)
    else:
        link = create_only_wallet(request, connection)
    response = to_pin(take=token)
    sessions.set_cookie(response, sessions.LINK_COOKIE, link.token)
    sessions.set_cookie(response, sessions.UNKEPT_COOKIE, "1", sessions.REMEMBERED)
    return response


@transaction.atomic
def create_wallet(
    request: HttpRequest, tenant: Tenant, connection_id: UUID | None = None
) -> PersonalLink:
    """connection_id: of the link if it makes one wallet."""
    wallet = Wallet.create(tenant)
    audit.record("wallet.created", wallet, by=request)
    return create_link(
        wallet, by=request, made_by_visitor=True, made_by_connection=connection_id
    )


@transaction.atomic
def create_only_wallet(request: HttpRequest, connection: Connection) -> PersonalLink:
    """Return a new personal link of the one wallet that a link makes.

    Of two browsers at once, the later one gets the wallet of the first, unless its PIN
    was chosen: 409 `wallet_made`. Locks the organization. 429 `too_many_requests`.
    """
    tenant = connection.tenant
    tenant.lock_row()
    links = PersonalLink.objects.filter(
        tenant=tenant, made_by_connection=connection.pk, wallet__deleted_at=None
    )
    made = links.select_related("wallet").first()
    if made is None:
        return create_wallet(request, tenant, connection.pk)
    rate_limits.take_token("wallet_of_link", str(connection.pk), BEGUN_AGAIN)
    made.wallet.lock_or_404()
    if not links.select_for_update(of=["self"]).filter(pk=made.pk, pin="").first():
        raise Conflict("wallet_made", "This link has made a wallet before.")
    return create_link(made.wallet, by=request, made_by_visitor=True)


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


# POST only; an error becomes a page. A visitor is a stranger: it is long work, so that
# all of them together leave half of the processors to organizations.
new_wallet = heavy(guard(("POST",), make_wallet, make_wallet))
