"""The page of a person: what they hold, what waits and what happened, in one order.

A person is whoever is at the other end of a connection, or whom a card that was offered
by a link names. Others of the same name may be other people: what the name alone finds
is marked, and nothing of another connection is shown but the way to it.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.text import Truncator

from agency.studio.chosen import plan_link
from agency.studio.exchange.known_cards import (
    MAX_SHOWN,
    find_checks_of,
    find_namesakes,
)
from agency.studio.lists import CREDENTIALS, VERIFICATIONS
from agency.studio.objects import of_tenant, recipient_of
from agency.studio.pages import MemberRequest, member_page
from agency.words.states import next_step, ran_out_on
from connections.models import BasicMessage, Connection
from core.api.pagination import only_columns
from credentials.models import Credential
from tenants.models import Membership, Permission
from verifications.models import Verification
from wallets.models import Wallet

Row = TypeVar("Row", Credential, Verification, BasicMessage)

MAX_WAITING = 10  # with their links, above what happened
MAX_TEXT = 200  # characters of a message


@dataclass(frozen=True)
class Entry:
    """A line of the page.

    kind: `card`, `check`, `message`, `connection` or `wallet`. by_name: whether only
    the name says that it is theirs. text: of a message. link: that waits for them.
    """

    kind: str
    time: datetime
    row: Credential | Verification | BasicMessage | Connection | Wallet
    by_name: bool = False
    text: str = ""
    next_step: str = ""
    link: str = ""

    @property
    def key(self) -> str:
        return str(self.row.pk)


@dataclass(frozen=True)
class Person:
    """name: as the member may see it. entries: the newest first.

    others: connections with somebody of this name. older: the lists that have more.
    wallet: that is hosted here for them, with its personal link if there is one.
    """

    name: str
    entries: list[Entry]
    connection: Connection | None = None
    others: Collection[Connection] = ()
    older: Collection[str] = ()
    wallet: Wallet | None = None

    @property
    def waiting(self) -> list[Entry]:
        return [one for one in self.entries if one.next_step]

    @property
    def first_waiting(self) -> list[Entry]:
        return self.waiting[:MAX_WAITING]

    @property
    def more_waiting(self) -> int:
        return len(self.waiting) - len(self.first_waiting)

    @property
    def cards(self) -> list[Entry]:
        """What they hold: issued, and not revoked."""
        return [
            one
            for one in self.entries
            if isinstance(one.row, Credential)
            and one.row.role == Credential.Role.ISSUER
            and one.row.state == Credential.State.ISSUED
        ]

    @property
    def newest_card(self) -> Credential | None:
        """Their newest card, like which the next one is likely to be."""
        own = (
            one.row for one in self.entries if one.kind == "card" and not one.by_name
        )
        cards = [
            row
            for row in own
            if isinstance(row, Credential) and row.role == Credential.Role.ISSUER
        ]
        return max(cards, key=lambda card: card.pk, default=None)

    @property
    def has_ended(self) -> bool:
        """Whether that was revoked or has run out, and they hold no other one."""
        card = self.newest_card
        is_revoked = card and card.state == Credential.State.REVOKED
        held = [one.row for one in self.cards if isinstance(one.row, Credential)]
        holds = any(not ran_out_on(row) for row in held)
        return bool(is_revoked or (card and ran_out_on(card))) and not holds


@member_page("GET")
def show_person(request: MemberRequest, kind: str, object_id: UUID) -> HttpResponse:
    """The person of a connection, or of a credential that was offered by a link.

    That of a credential over a connection leads to the one of the connection. 404 for
    what a hosted wallet has, and for a card of the organization itself.
    """
    if kind == "connection":
        person = person_of_connection(request.membership, object_id)
    else:
        wallet = Wallet.of_organization(request.tenant)
        offered = CREDENTIALS.rows(wallet).filter(role=Credential.Role.ISSUER)
        credential = get_object_or_404(offered, pk=object_id)
        [credential] = of_tenant(request.tenant, [credential])
        if credential.live_connection and not credential.is_by_link:
            peer = credential.live_connection
            return redirect("studio:connection_person", request.tenant.pk, peer.pk)
        person = person_of_credential(request.membership, wallet, credential)
    may_act = request.membership.may(Permission.OPERATE)
    context = {
        "person": person,
        "may_act": may_act,
        "is_connected": person.connection and is_usable(person.connection),
    }
    return render(request, "studio/person.html", context)


def is_usable(connection: Connection) -> bool:
    is_connected = connection.state == Connection.State.CONNECTED
    return is_connected and not connection.left_at


def person_of_connection(membership: Membership, object_id: UUID) -> Person:
    """Whoever is at the other end. In at most nine queries. Raises Http404."""
    rows = Connection.objects.filter(
        wallet__in=Wallet.objects.filter(is_organization=True),
        tenant=membership.tenant,
        connectionless=False,
        multi_party=False,
        deleted_at=None,
    )
    live = only_columns(rows.select_related("wallet"), ())
    connection = get_object_or_404(live, pk=object_id)
    wallet = connection.wallet
    wallet.tenant = connection.tenant = membership.tenant
    cards = newest(CREDENTIALS.rows(wallet), connection)
    checks = newest(VERIFICATIONS.rows(wallet), connection)
    texts = newest(BasicMessage.objects.all(), connection)
    names = [one for card in cards if (one := card.unsealed_recipient_name())]
    names = names or [connection.name]
    namesakes = find_namesakes(membership, wallet, names)
    known = {card.pk for card in cards}
    by_name = [row for row in namesakes if row.pk not in known]
    hosted = find_hosted(connection)
    entries = [
        entry_of(connection, "connection", membership),
        *(entry_of(row, "card", membership) for row in cards[:MAX_SHOWN]),
        *(entry_of(row, "check", membership) for row in checks[:MAX_SHOWN]),
        *(message_of(row, connection, membership) for row in texts[:MAX_SHOWN]),
        *(
            entry_of(row, "card", membership, by_name=True)
            for row in by_name
            if row.is_by_link
        ),
        *(
            entry_of(row, "check", membership, by_name=True)
            for row in find_checks_of(membership, wallet, names)
        ),
    ]
    if hosted:
        entries.append(Entry("wallet", hosted.created_at, hosted))
    counts = {
        "credentials": len(cards),
        "verifications": len(checks),
        "chat": len(texts),
    }
    shown = recipient_of(cards[0], membership) if cards else ""
    return Person(
        name=connection.name or shown or connection.connection_id,
        entries=in_order(entries),
        connection=connection,
        others=connections_of(by_name, besides=connection),
        older=[name for name, count in counts.items() if count > MAX_SHOWN],
        wallet=hosted,
    )


def person_of_credential(
    membership: Membership, wallet: Wallet, credential: Credential
) -> Person:
    """Whoever has the name on a credential. Without the name, nothing but that."""
    name = credential.unsealed_recipient_name()
    found = find_namesakes(membership, wallet, [name])
    rows = [credential, *(row for row in found if row.pk != credential.pk)]
    hosted = find_taker(credential)
    entries = [
        entry_of(row, "card", membership, by_name=row is not credential)
        for row in rows
        if row.is_by_link
    ]
    entries += [
        entry_of(row, "check", membership, by_name=True)
        for row in find_checks_of(membership, wallet, [name])
    ]
    if hosted:
        entries.append(Entry("wallet", hosted.created_at, hosted))
    return Person(
        name=recipient_of(credential, membership),
        entries=in_order(entries),
        others=connections_of(rows),
        wallet=hosted,
    )


def newest(rows: QuerySet[Row], connection: Connection) -> list[Row]:
    """The newest over a connection, and one more than is shown if there are more."""
    found = list(rows.filter(connection=connection).order_by("-pk")[: MAX_SHOWN + 1])
    for row in found:
        row.tenant = connection.tenant
    return found


def connections_of(
    rows: Iterable[Credential], besides: Connection | None = None
) -> list[Connection]:
    """The connections over which these were offered, each once."""
    found = {
        row.connection_id: row.connection
        for row in rows
        if row.live_connection and not row.is_by_link
    }
    if besides:
        found.pop(besides.pk, None)
    return [one for one in found.values() if one]


def find_hosted(connection: Connection) -> Wallet | None:
    """The wallet of the organization's holders that is at the other end, if one is."""
    if not connection.their_key:
        return None
    rows = Wallet.hosted_by(connection.tenant).filter(
        connections__my_key__verkey=connection.their_key, deleted_at=None
    )
    found = rows.select_related("personal_link").first()
    return of_tenant(connection.tenant, [found])[0] if found else None


def find_taker(credential: Credential) -> Wallet | None:
    """The wallet of the organization's holders that has taken this card, if one has."""
    rows = Wallet.hosted_by(credential.tenant).filter(
        credentials__thread_id=credential.thread_id,
        credentials__role=Credential.Role.HOLDER,
        deleted_at=None,
    )
    found = rows.select_related("personal_link").first()
    return of_tenant(credential.tenant, [found])[0] if found else None


def entry_of(
    row: Credential | Verification | Connection,
    kind: str,
    membership: Membership,
    by_name: bool = False,
) -> Entry:
    """What waits has the link for it, for who may give it to somebody."""
    if isinstance(row, Connection):
        waits, time = row.state != Connection.State.CONNECTED, row.updated_at
    else:
        waits, time = row.state in row.OPEN, row.in_state_since
    may_give = waits and membership.may(Permission.OPERATE)
    return Entry(
        kind,
        time,
        row,
        by_name=by_name,
        next_step=next_step(row) if waits else "",
        link=plan_link(row).link if may_give else "",
    )


def message_of(
    row: BasicMessage, connection: Connection, membership: Membership
) -> Entry:
    """Its text is for those who may open the chat."""
    row.connection = connection
    text = row.unseal_text() if membership.may(Permission.OPERATE) else ""
    return Entry("message", row.created_at, row, text=Truncator(text).chars(MAX_TEXT))


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    return sorted(entries, key=lambda one: one.time, reverse=True)
