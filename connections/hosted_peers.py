"""The connections of a wallet, and which of them are with wallets hosted here."""

from collections.abc import Collection

from django.db.models import QuerySet

from connections.models import Connection
from wallets.models import Wallet


def own_connections(wallet: Wallet) -> QuerySet[Connection]:
    """Return the wallet's connections, without those of connectionless exchanges."""
    rows = wallet.connections.filter(connectionless=False)
    return rows.select_related("my_key", "invitation_key")


def connections_with_hosted(
    wallet: Wallet, wallet_ids: Collection[str]
) -> dict[str, Connection]:
    """Return the wallet's newest usable connection with each hosted wallet, by its id.

    wallet_ids: of hosted wallets of the same organization.
    """
    if not wallet_ids:
        return {}
    theirs = Connection.objects.filter(
        Connection.USABLE,
        tenant=wallet.tenant_id,
        wallet__wallet_id__in=wallet_ids,
        wallet__is_organization=False,
        wallet__deleted_at=None,
    )
    ids = dict(theirs.values_list("my_key__verkey", "wallet__wallet_id"))
    ours = own_connections(wallet).filter(Connection.USABLE, their_key__in=list(ids))
    # The oldest first, so that of several with one wallet the newest stays.
    return {ids[row.their_key]: row for row in ours.order_by("pk")}
