"""Whose connection a call of the API may see."""

from uuid import UUID

from connections.models import Connection
from core.database.compiled_sql import CompiledQuery

# By the id, which is unique in the organization, and not by the wallet: PostgreSQL
# plans a prepared statement for the usual wallet, which has few connections, and would
# read all connections of one that has many.
_connection_by_id = CompiledQuery(
    lambda tenant, connection_id: Connection.objects.filter(
        tenant=tenant, connection_id=connection_id, connectionless=False
    ).select_related("wallet", "my_key", "invitation_key"),
    UUID,
    str,
)


def find_in_scope(
    tenant_id: UUID, connection_id: str, wallet_id: str | None = None
) -> Connection | None:
    """Find a connection of the organization's own wallet or of a hosted one, or None.

    This takes one query. wallet_id: of the hosted wallet; None for the organization's
    own. A connection of another wallet, or of a connectionless exchange, is not found.
    """
    found = _connection_by_id.first(tenant_id, connection_id)
    if not found:
        return None
    is_hosted = not found.wallet.is_organization
    hosted_id = found.wallet.wallet_id if is_hosted else None
    return found if hosted_id == wallet_id else None
