"""Make, find and revoke the personal links of hosted wallets."""

from uuid import UUID

from django.db import transaction
from django.http import HttpRequest

from agency.holders.wallet.models import PersonalLink
from core.errors import NotFound
from tenants import audit, tokens
from wallets.models import Wallet

PREFIX = "agw"


@transaction.atomic
def create_link(
    wallet: Wallet,
    by: HttpRequest,
    made_by_visitor: bool = False,
    made_by_connection: UUID | None = None,
) -> PersonalLink:
    """Make the wallet's link, with its `token`, and record it, in one transaction.

    A link that the wallet had is deleted with its PIN and its sessions; of which ended
    cards its holder was told is kept, and by which link the wallet was made. The wallet
    is locked, so that it has one link. 404 `not_found` if it was deleted meanwhile. by:
    who, for the log: a request. made_by_visitor: whether that is a stranger.
    made_by_connection: by whose link, as in PersonalLink.
    """
    wallet.lock_or_404()
    former = PersonalLink.objects.filter(wallet=wallet)
    told_at, made_by = former.values_list("told_at", "made_by_connection").first() or (
        None,
        made_by_connection,
    )
    link = PersonalLink(
        tenant_id=wallet.tenant_id,
        wallet=wallet,
        made_by_visitor=made_by_visitor,
        told_at=told_at,
        made_by_connection=made_by,
    )
    former.delete()
    link.token = tokens.generate_token(PREFIX)
    link.digest = tokens.digest_of(link.token)
    link.save(force_insert=True)
    audit.record("wallet.link_created", wallet, by=by)
    return link


@transaction.atomic
def revoke_link(wallet: Wallet, by: HttpRequest) -> None:
    """End the link, its PIN and its sessions. Without a link this does nothing."""
    deleted, _ = PersonalLink.objects.filter(wallet=wallet).delete()
    if deleted:
        audit.record("wallet.link_revoked", wallet, by=by)


def find_link(token: str) -> PersonalLink:
    """Return the link with this token, its wallet, organization and network.

    Raises NotFound `wallet_link_gone`: unknown, replaced, revoked or expired.
    """
    if tokens.is_well_formed(token, PREFIX):
        rows = PersonalLink.objects.filter(
            digest=tokens.digest_of(token),
            wallet__deleted_at=None,
            wallet__tenant__deleted_at=None,
        )
        found = rows.select_related("wallet__tenant__network").first()
        if found and not found.is_expired:
            found.token = token
            return found
    raise link_gone()


def lock_link(link: PersonalLink) -> None:
    """Raises NotFound `wallet_link_gone` if it was replaced or revoked meanwhile."""
    if not PersonalLink.objects.select_for_update().filter(pk=link.pk).first():
        raise link_gone()


def link_gone() -> NotFound:
    return NotFound(
        "wallet_link_gone",
        "This personal link does not work (any more). Ask the organization that "
        "hosts the wallet for a new one.",
    )
