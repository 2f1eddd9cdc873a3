"""What an organization knows itself of whom a check names that is not valid.

As the issuer of their cards, and nothing of what their wallet knows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from agency.studio.lists import CREDENTIALS, VERIFICATIONS
from agency.studio.objects import of_tenant, recipient_of
from agency.words.asking import definition_ids
from core.text.folding import folded_words
from credentials.models import Credential
from credentials.models.name_search import NameDigests, RowDigests, find_named
from tenants.models import Membership, Permission, Tenant
from verifications.models import CheckDigests, Verification
from verifications.named_checks import find_names
from wallets.models import Wallet

MAX_NAMED = 200  # credentials whose names begin as this one, of which some are it
MAX_SHOWN = 50  # of a person
MAX_KNOWN = 3  # cards, the newest ones
ENDED = (Credential.State.ISSUED, Credential.State.REVOKED)


@dataclass(frozen=True)
class Known:
    """A card of whom a check names. name: as the member may see it.

    by_name: whether only the name says that it is theirs. since: when it was issued, or
    revoked.
    """

    card: Credential
    name: str
    by_name: bool
    is_revoked: bool
    since: datetime


def find_known(membership: Membership, row: Verification) -> list[Known]:
    """The newest cards of the organization that whom the check is about was issued.

    Of the definitions that were asked for, if any were. Nothing of a valid check. By
    the name that an answer by a link shows only for who may see names.
    """
    is_own = row.wallet.is_organization and row.role == Verification.Role.VERIFIER
    if row.is_valid or row.state in row.OPEN or not is_own or row.request_body is None:
        return []
    name = recipient_of(row, membership)
    wallet = Wallet.of_organization(membership.tenant)
    if not row.is_by_link:
        rows = CREDENTIALS.rows(wallet).filter(
            connection=row.connection, role=Credential.Role.ISSUER, state__in=ENDED
        )
        cards = of_tenant(wallet.tenant, rows.order_by("-pk")[:MAX_SHOWN])
    else:
        cards = find_namesakes(membership, wallet, [name])
    asked = definition_ids(row.require_proof_request().items)
    return [
        Known(
            card,
            name=known_name(card, membership),
            by_name=row.is_by_link,
            is_revoked=card.state == Credential.State.REVOKED,
            since=card.in_state_since,
        )
        for card in cards
        if card.state in ENDED and (not asked or card.definition_id in asked)
    ][:MAX_KNOWN]


def known_name(card: Credential, membership: Membership) -> str:
    peer = card.live_connection
    of_peer = peer.name if peer and not peer.connectionless else ""
    return recipient_of(card, membership) or of_peer


def find_namesakes(
    membership: Membership, wallet: Wallet, names: Sequence[str]
) -> list[Credential]:
    """The newest credentials with one of these names, for who may see names.

    names: the newest first, which is the only one that is searched for. Case and
    accents make no difference.
    """
    found = find_alike(membership, wallet.tenant, names, NameDigests)
    if found is None:
        return []
    rows = CREDENTIALS.rows(wallet).filter(pk__in=found).order_by("-pk")
    wanted = {folded(name) for name in names if name}
    return [
        row
        for row in of_tenant(wallet.tenant, rows)
        if folded(row.unsealed_recipient_name()) in wanted
    ][:MAX_SHOWN]


def find_checks_of(
    membership: Membership, wallet: Wallet, names: Sequence[str]
) -> list[Verification]:
    """The newest checks by a link whose proofs show one of these names.

    As find_namesakes().
    """
    found = find_alike(membership, wallet.tenant, names, CheckDigests)
    if found is None:
        return []
    rows = VERIFICATIONS.rows(wallet).filter(pk__in=found).order_by("-pk")
    checks = of_tenant(wallet.tenant, rows)
    wanted = {folded(name) for name in names if name}
    named = find_names(wallet.tenant, checks)
    return [row for row in checks if folded(named.get(row.pk, "")) in wanted][
        :MAX_SHOWN
    ]


def find_alike(
    membership: Membership, tenant: Tenant, names: Sequence[str], of: type[RowDigests]
) -> QuerySet[Any] | None:
    """The ids of rows whose names begin like the first of these, for who sees names."""
    name = next(filter(None, names), "")
    if not (name and tenant.name_search and membership.may(Permission.NAMES)):
        return None
    return find_named(tenant, name, MAX_NAMED, of)


def folded(name: str) -> tuple[str, ...]:
    return tuple(folded_words(name))
