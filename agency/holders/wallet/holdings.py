"""What a wallet holds and what waits for its holder, as the pages show it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Generic, TypeVar
from urllib.parse import urlsplit

from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from agency.holders.wallet.models import PersonalLink
from agency.words.cards import (
    BACKGROUND,
    Card,
    card_name,
    definitions_of,
    draw_card,
    place_entries,
)
from agency.words.states import words_of
from connections.exchange import PARTIES
from connections.models import Connection
from core.database.uuids import parse_uuid
from credentials.ledgers.reads import name_of_schema
from credentials.models import Credential, CredentialDefinition
from credentials.openid4vci import holding
from verifications.models import Verification
from verifications.wording import as_day, ended_on, label_of
from wallets.models import Key, Wallet

MAX_SHOWN = 50  # on a page; older ones are on the next
MAX_OLDER = 500  # cards behind the first page of which it is told that they have ended
Row = TypeVar("Row")
Exchanged = TypeVar("Exchanged", bound=Credential | Verification)
OPEN_OFFERS = (Credential.State.OFFERED, Credential.State.REQUESTED)


@dataclass(frozen=True)
class Value:
    """An attribute. day: of a number that is a date by the name of the attribute.

    chosen: what its issuer calls it, or "".
    """

    name: str
    text: str
    day: date | None
    chosen: str = ""

    @property
    def label(self) -> str:
        return self.chosen or label_of(self.name)


@dataclass(frozen=True)
class Page(Generic[Row]):
    """Rows, newest first. older: the id after which the next page begins, or ""."""

    rows: list[Row]
    older: str


def read_values(card: Any) -> None:
    """Add `values_shown`, `is_expired`, and `last_day` if it has expired, or None."""
    values = card.unsealed_values() or {}
    card.values_shown = shown_values(values)
    card.last_day = ended_on(values)
    card.is_expired = card.last_day is not None


def draw_cards(cards: Sequence[Any]) -> None:
    """Add `card`: what card.html draws. One query for all.

    cards: with their names and values, by name_rows() and read_values(). Of an issuer
    elsewhere, a card has no design.
    """
    ids = [card.definition_id for card in cards]
    known = definitions_of(cards[0].tenant_id, ids) if cards else {}
    for card in cards:
        values = {value.name: value.text for value in card.values_shown}
        if found := known.get(card.definition_id):
            card.card = draw_card(found, values)
        else:
            card.card = draw_unknown(card, values)


def name_cards(rows: Sequence[Any], known: Mapping[str, CredentialDefinition]) -> None:
    """Set `title` to what the issuer calls the card, in the active language."""
    for row in rows:
        if found := known.get(row.definition_id):
            row.title = card_name(found)


def draw_unknown(card: Any, values: dict[str, str]) -> Card:
    """The card of an issuer elsewhere. card: with its names, by name_rows()."""
    return place_entries(
        {}, list(values), values,
        name=card.title, issuer=card.peer, background=BACKGROUND,
    )  # fmt: skip


def is_revoked(card: Credential) -> bool:
    return card.state == Credential.State.REVOKED


def ended_in_words(card: Any) -> str:
    """Say that a card was revoked or has expired, and when.

    card: with its names and values, by name_rows() and read_values().
    """
    told = {"card": card.title, "name": card.peer}
    if is_revoked(card):
        told["date"] = date_format(
            timezone.localtime(card.in_state_since), "DATE_FORMAT"
        )
        if card.peer:
            return _("Your %(card)s card was cancelled by %(name)s on %(date)s.") % told
    elif card.last_day:
        told["date"] = date_format(card.last_day, "DATE_FORMAT")
        return _("Your %(card)s card expired: its last day was %(date)s.") % told
    return _("Your %(card)s card was cancelled.") % told


def tell_ended(link: PersonalLink, page: Page[Credential]) -> list[str]:
    """Return which cards have ended since the holder was told last, and store it.

    Each card is told once. page: the first one of the cards, with names and values. A
    card expires at the end of a day, so older ones are decrypted once a day.
    """
    since = link.told_at or link.wallet.created_at
    day = timezone.localtime(since).date()
    is_new_day = day < timezone.localdate()
    cards: list[Any] = list(page.rows)
    if page.older:
        older = Credential.in_wallet(link.wallet).filter(pk__lt=page.older)
        if not is_new_day:
            revoked = Credential.State.REVOKED
            older = older.filter(state=revoked, updated_at__gt=since)
        cards += older.order_by("-pk")[:MAX_OLDER]
        name_rows(cards[len(page.rows) :])
        for card in cards[len(page.rows) :]:
            read_values(card)
    told = [
        ended_in_words(card)
        for card in cards
        if (is_revoked(card) and card.in_state_since > since)
        or (card.last_day and card.last_day >= day)
    ]
    if told or is_new_day:
        rows = PersonalLink.objects.filter(pk=link.pk, told_at=link.told_at)
        rows.update(told_at=timezone.now())
    return told


def offers_of(wallet: Wallet) -> QuerySet[Credential]:
    """What a wallet was offered or has, with what move() needs of it."""
    rows = Credential.objects.filter(wallet=wallet, role=Credential.Role.HOLDER)
    return rows.select_related(*PARTIES)


def requests_of(wallet: Wallet) -> QuerySet[Verification]:
    """What a wallet was asked for, with what move() needs of it."""
    rows = Verification.objects.filter(wallet=wallet, role=Verification.Role.PROVER)
    return rows.select_related(*PARTIES)


def open_requests(wallet: Wallet) -> QuerySet[Verification]:
    return requests_of(wallet).filter(state=Verification.State.REQUESTED)


def awaits_holder(wallet: Wallet) -> bool:
    """Whether an offer or a question waits for the holder's answer."""
    offers = offers_of(wallet).filter(state=Credential.State.OFFERED)
    return offers.exists() or open_requests(wallet).exists()


def newest(rows: QuerySet[Exchanged], before: str = "") -> Page[Exchanged]:
    """The page of the rows, each with its names; before: an id, or nothing."""
    condition = Q(pk__lt=parsed) if (parsed := parse_uuid(before)) else Q()
    found = list(rows.filter(condition).order_by("-pk")[: MAX_SHOWN + 1])
    shown = found[:MAX_SHOWN]
    name_rows(shown)
    return Page(shown, str(shown[-1].pk) if len(found) > MAX_SHOWN else "")


def name_rows(rows: Sequence[Any]) -> None:
    """Add `is_offer`, `words`, `title`, and `peer`: the name of the other side, or "".

    rows: credentials or verifications, with their connections. One query for all.
    """
    verkeys = [row.live_connection.their_key for row in rows if row.live_connection]
    # The keys of parties here, with their wallets and organizations.
    keys = Key.objects.filter(verkey__in=verkeys).select_related("wallet", "tenant")
    columns = ("verkey", "wallet__is_organization", "tenant__name")
    hosted = {key.verkey: key for key in keys.only(*columns)} if verkeys else {}
    for row in rows:
        row.is_offer = isinstance(row, Credential)
        row.words = words_of(row)
        # The name of the credential, or what the verifier calls its request.
        row.title = (
            name_of_schema(row.schema_id)
            if row.is_offer
            else row.unsealed_policy().name
        )
        connection = row.live_connection
        row.peer = peer_name(connection, hosted) if connection else ""
        if row.is_offer and holding.is_of_others(row):
            row.title, row.peer = holding.names_of_others(row)


def peer_name(connection: Connection, hosted: dict[str, Key]) -> str:
    """The name of the organization here, else the label of the invitation, or a host.

    An organization may call its connections as it likes, for example by the holder.
    """
    key = hosted.get(connection.their_key)
    owner = key.tenant.name if key and key.tenant else ""
    if key and key.wallet and key.wallet.is_organization:
        return owner
    host = urlsplit(connection.their_endpoint).hostname or ""
    return connection.name or owner or host


def shown_values(values: dict[str, str]) -> list[Value]:
    return [Value(name, text, as_day(name, text)) for name, text in values.items()]
