"""Delete credentials. This does not revoke them."""

from uuid import UUID

from django.db.models import Q

from connections.models import Connection
from core.work import transactions
from core.work.row_locks import lock_in_order
from credentials.models.credential import Credential
from credentials.revocation import publish_before_deletion
from wallets.models import Wallet


def remove_credential(credential: Credential) -> None:
    """Delete a credential. An open exchange is declined, and its peer is told.

    If the credential is revoked, its list is published first, which may wait seconds;
    on 503 `ledger_unavailable` or `list_superseded` nothing is deleted. 409
    `wrong_state` if a peer hosted here has just ended it; 503 `organization_frozen`.
    Outside of transactions. Does nothing if it was deleted meanwhile.
    """
    is_removed = False
    while not is_removed:  # at most twice: nothing follows on a revocation
        listed = publish_before_deletion(Credential.objects.filter(pk=credential.pk))
        is_removed = _remove_if_listed(credential, listed)


@transactions.atomic()
def _remove_if_listed(credential: Credential, listed: list[UUID]) -> bool:
    """Delete the row. Return False if it was revoked meanwhile, which is not listed."""
    if not credential.lock_and_reload_state():
        return True
    is_revoked = credential.state == Credential.State.REVOKED
    if is_revoked and credential.role == Credential.Role.ISSUER and not listed:
        return False
    connection = credential.connection
    if connection and connection.connectionless:
        # It exists for this exchange only, and declines it while it exists.
        connection.remove()
    elif credential.state in Credential.OPEN:
        credential.decline()
    credential.delete()
    return True


def purge_credentials(wallet: Wallet, definition_id: str) -> None:
    """Issuer: delete the finished credentials of a definition.

    The lists of the revoked ones are published first; on 503 `ledger_unavailable`
    nothing is deleted. All is deleted in one transaction, with the connections that
    exist for these exchanges only.
    """
    credentials = Credential.objects.filter(
        wallet=wallet, role=Credential.Role.ISSUER, definition_id=definition_id
    ).exclude(state__in=Credential.OPEN)
    listed = publish_before_deletion(credentials)
    # Keep those that were revoked in the meantime: they are not listed yet.
    credentials = credentials.filter(
        ~Q(state=Credential.State.REVOKED) | Q(pk__in=listed)
    )
    with transactions.atomic():
        connections = list(
            Connection.objects.filter(connectionless=True, credential__in=credentials)
        )
        Connection.lock_all(connections)
        lock_in_order(credentials)
        for connection in connections:
            connection.remove()
        credentials.delete()
