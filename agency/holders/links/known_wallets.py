"""Which wallet was opened in this browser, so that a link leads back into it."""

from django.http import HttpRequest

from tenants.models import Tenant
from wallets.models import Wallet

# The digest of the personal link (agency/holders/wallet/). It holds no secret.
OPEN_COOKIE = "agency_wallet_open"


def knows_wallet(request: HttpRequest, tenant: Tenant) -> bool:
    """Whether a wallet of the organization was opened in this browser.

    Without a live session, its pages ask for the PIN.
    """
    try:
        digest = bytes.fromhex(request.COOKIES.get(OPEN_COOKIE, ""))
    except ValueError:
        return False
    rows = Wallet.objects.filter(tenant=tenant, deleted_at=None)
    return bool(digest) and rows.filter(personal_link__digest=digest).exists()
