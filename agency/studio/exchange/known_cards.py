"""What an organization knows itself of whom a check names that is not valid.

As the issuer of their cards, and nothing of what their wallet knows.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.db.models import QuerySet

from agency.studio.lists import CREDENTIALS, VERIFICATIONS
from agency.studio.objects import of_tenant, recipient_of
from agency.words.asking import condition_in_words, definition_ids
from agency.words.cards import card_name, definitions_of
from core.text.folding import folded_words
from credentials.models import Credential, CredentialDefinition
from credentials.models.name_search import NameDigests, RowDigests, find_named
from tenants.models import Membership, Permission, Tenant
from verifications.models import CheckDigests, Verification
from verifications.named_checks import find_names
from verifications.proofs.proof_items import Item
from verifications.proofs.selection import differences_of
from verifications.wording import ended_on
from wallets.anoncreds import normalise_name
from wallets.models import Wallet

MAX_NAMED = 200  # credentials whose names begin as this one, of which some are it
MAX_SHOWN = 50  # of a person
MAX_KNOWN = 3  # cards, the newest ones
NUMBER = re.compile(r"[+-]?[0-9]{1,10}")
ENDED = (Credential.State.ISSUED, Credential.State.REVOKED)


@dataclass(frozen=True)
class Known:
    """A card of whom a check names. name: as the member may see it.

    by_name: whether only the name says that it is theirs. since: when it was issued, or
    revoked. ran_out: its last day, if that was over. unmet: the conditions of the check
    that its values do not meet, in words.
    """

    card: Credential
    name: str
    by_name: bool
    is_revoked: bool
    since: datetime
    ran_out: date | None = None
    unmet: Sequence[str] = ()


@dataclass(frozen=True)
class Case:
    """What the organization knows of a check that is not valid.

    lacks: what the card is called that they have none of, if it is known who they are
    and they have none. definition: of the one card that was asked for, if the check
    names nobody.
    """

    known: Sequence[Known] = ()
    lacks: str = ""
    definition: CredentialDefinition | None = None

    @property
    def is_known(self) -> bool:
        return bool(self.known or self.lacks)


def find_case(membership: Membership, row: Verification) -> Case:
    """What the organization's own cards say of whom the check is about.

    The newest ones of the definitions that were asked for, if any were. Nothing of a
    valid check. By the name that an answer by a link shows only for who may see names.
    """
    is_own = row.wallet.is_organization and row.role == Verification.Role.VERIFIER
    if row.is_valid or row.state in row.OPEN or not is_own or row.request_body is None:
        return Case()
    name = recipient_of(row, membership)
    wallet = Wallet.of_organization(membership.tenant)
    if not row.is_by_link:
        rows = CREDENTIALS.rows(wallet).filter(
            connection=row.connection, role=Credential.Role.ISSUER, state__in=ENDED
        )
        cards = of_tenant(wallet.tenant, rows.order_by("-pk")[:MAX_SHOWN])
    else:
        cards = find_namesakes(membership, wallet, [name])
    items = row.require_proof_request().items
    asked = definition_ids(items)
    found = [
        card
        for card in cards
        if card.state in ENDED and (not asked or card.definition_id in asked)
    ][:MAX_KNOWN]
    if found:
        return Case(list_known(membership, row, found))
    known = definitions_of(row.tenant_id, asked)
    own = [one for one in known.values() if one.tenant_id == row.tenant_id]
    if len(asked) != 1 or not own:
        return Case()
    if not row.is_by_link or (name and may_find(membership)):
        return Case(lacks=card_name(own[0]))
    return Case() if name else Case(definition=own[0])


def list_known(
    membership: Membership, row: Verification, cards: Sequence[Credential]
) -> list[Known]:
    """What each of these cards of a person says of the check. In two queries."""
    items = row.require_proof_request().items
    known = definitions_of(row.tenant_id, definition_ids(items))
    day = (row.verified_at or row.in_state_since).date()
    read = Credential.objects.filter(pk__in=[card.pk for card in cards])
    values = {
        one.pk: one.unsealed_values() or {} for one in read.only("tenant", "values")
    }
    return [
        Known(
            card,
            name=known_name(card, membership),
            by_name=row.is_by_link,
            is_revoked=card.state == Credential.State.REVOKED,
            since=card.in_state_since,
            ran_out=ended_on(values[card.pk], day),
            unmet=[
                condition_in_words(item, known, row.created_at.date())
                for item in items
                if not is_met(item, card, values[card.pk])
            ],
        )
        for card in cards
    ]


def is_met(item: Item, card: Credential, values: Mapping[str, str]) -> bool:
    """Whether a card meets a condition, as far as its values say; of others True."""
    ids = definition_ids([item])
    if not item.is_predicate or (ids and card.definition_id not in ids):
        return True
    [label] = item.labels
    texts = [text for name, text in values.items() if normalise_name(name) == label]
    number = next((int(text) for text in texts if NUMBER.fullmatch(text)), None)
    return number is None or min(differences_of(item, number)) >= 0


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


def may_find(membership: Membership) -> bool:
    """Whether a member finds people by their names."""
    return membership.tenant.name_search and membership.may(Permission.NAMES)


def find_alike(
    membership: Membership, tenant: Tenant, names: Sequence[str], of: type[RowDigests]
) -> QuerySet[Any] | None:
    """The ids of rows whose names begin like the first of these, for who sees names."""
    name = next(filter(None, names), "")
    if not (name and may_find(membership)):
        return None
    return find_named(tenant, name, MAX_NAMED, of)


def folded(name: str) -> tuple[str, ...]:
    return tuple(folded_words(name))
