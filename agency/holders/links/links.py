"""Find what is behind the token of a link, and in which state it is."""

from dataclasses import dataclass
from uuid import UUID

from agency.holders.links.models import ClosedLink
from agency.words import states
from agency.words.links import LinkState as State
from connections import invitation_links
from connections.link_expiry import LINK_EXPIRED
from connections.models import Connection
from credentials.models import Credential
from tenants.models import Tenant
from verifications.models import Verification

Kind = ClosedLink.Kind
Exchange = Credential | Verification
# By the end of the type of the message in the link, for both protocol versions.
KINDS = {"/offer-credential": Kind.OFFER, "/request-presentation": Kind.REQUEST}
MODELS: dict[str, type[Exchange]] = {
    Kind.OFFER: Credential,
    Kind.REQUEST: Verification,
}
LIVE = (State.WAITING, State.OPENED, State.ACCEPTED)
SEEN_ONLY = (State.DONE, State.FAILED)


@dataclass(frozen=True)
class Link:
    """A token that exists, or existed until its connection was deleted.

    connection: None after that. exchange: the offer or request in the link; None for
    an invitation, and once the exchange was deleted.
    """

    token: str
    tenant: Tenant
    kind: str
    connection: Connection | None
    exchange: Exchange | None
    closed: ClosedLink | None = None

    @property
    def name(self) -> str:
        """Of the sender. Empty if the wallet has none."""
        return self.connection.wallet.name if self.connection else self.tenant.name

    @property
    def logo_path(self) -> str:
        if self.connection and not self.connection.wallet.is_organization:
            return ""
        return self.tenant.logo_path

    @property
    def is_open(self) -> bool:
        """Whether a wallet that has not answered yet can use it."""
        is_open = bool(self.connection and self.connection.is_open)
        return is_open and self._state() in (State.WAITING, State.OPENED)

    def shows_contents(self, state: str) -> bool:
        """Whether the page that is in this state says what it was about.

        Of what is over only to who saw it live, and not once it was deleted.
        """
        return state in LIVE or (state in SEEN_ONLY and self.exchange is not None)

    def state(self, was_seen_live: bool) -> State:
        """The state for a page. was_seen_live: whether the page showed a live state."""
        state = self._state()
        return State.USED if state in SEEN_ONLY and not was_seen_live else state

    def _state(self) -> State:
        """Return the state as it is, whatever the page showed before (see state()).

        The exchange decides while there is one, also if it goes on over another
        connection. Else the closed link does, else the connection.
        """
        exchange = self.exchange
        if exchange is None:
            if self.closed is None:
                return self._connection_state()
            is_used = self.closed.reason == ClosedLink.Reason.USED
            return State.DONE if is_used else State.WITHDRAWN
        if known := states.words_of(exchange).link:
            return known
        if exchange.state != exchange.State.REJECTED:
            return self._open_state()
        if exchange.problem == LINK_EXPIRED:
            return State.EXPIRED
        # `declined` is our own code (Exchange.decline); others are the holder's.
        is_ours = exchange.problem == "declined"
        return State.WITHDRAWN if is_ours else State.DECLINED

    def _connection_state(self) -> State:
        """Of an invitation, or of a link whose exchange was deleted."""
        assert self.connection
        if self.kind != Kind.INVITATION and self.connection.is_open:
            return State.WITHDRAWN
        if self.connection.state == Connection.State.CONNECTED:
            return State.DONE
        if self.connection.problem:
            return State.DECLINED
        return self._open_state()

    def _open_state(self) -> State:
        if self.connection is None or not self.connection.is_open:
            return State.OPENED
        if self.connection.is_expired:
            return State.EXPIRED
        return State.OPENED if self.connection.opened_at else State.WAITING


def find_link(token: str) -> Link | None:
    """Find what a token leads to, with its exchange, or None.

    Of a link that was closed too, until its organization is deleted. Some queries; the
    message in an open link is decrypted.
    """
    connection = Connection.find_by_token(token)
    if connection:
        kind, thread_id = content_of(connection)
        return Link(
            token=token,
            tenant=connection.tenant,
            kind=kind,
            connection=connection,
            exchange=find_exchange(kind, connection.pk, thread_id),
        )
    closed_links = ClosedLink.objects.select_related("tenant__network")
    closed = closed_links.filter(token=token, tenant__deleted_at=None).first()
    if not closed:
        return None
    return Link(
        token=token,
        tenant=closed.tenant,
        kind=closed.kind,
        connection=None,
        exchange=find_exchange(closed.kind, closed.moved_to, closed.thread_id),
        closed=closed,
    )


def content_of(connection: Connection) -> tuple[str, str]:
    """The kind of the link, and the thread of the exchange in it or "".

    A link that shares no message is an invitation, unless it was made for an exchange.
    """
    request = invitation_links.shared_request(connection)
    if not request:
        return _exchange_without_message(connection)
    written = str(request["@type"])
    kinds = (kind for ending, kind in KINDS.items() if written.endswith(ending))
    return next(kinds, Kind.INVITATION), str(request["@id"])


def _exchange_without_message(connection: Connection) -> tuple[str, str]:
    if connection.connectionless:
        for kind, model in MODELS.items():
            found = model.objects.filter(connection=connection)
            if thread_id := found.values_list("thread_id", flat=True).first():
                return kind, thread_id
    return Kind.INVITATION, ""


def find_exchange(
    kind: str, connection_id: UUID | None, thread_id: str
) -> Exchange | None:
    if kind not in MODELS or not connection_id:
        return None
    rows = MODELS[kind].objects.select_related("tenant__network")
    return rows.filter(connection_id=connection_id, thread_id=thread_id).first()
