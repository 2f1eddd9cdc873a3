"""Connections in the credentials API and in the wallet API."""

from functools import partial
from typing import Any

from django.db import IntegrityError
from django.db.models import QuerySet
from rest_framework.parsers import FormParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from connections import resolver
from connections.api import given_messages, link_options
from connections.api.scopes import find_in_scope
from connections.api.serializers import (
    AcceptInvitationParameters,
    BasicMessageContract,
    BasicMessageParameters,
    BasicMessageQuery,
    BasicMessageRecord,
    ConnectionContract,
    ConnectionInvitationParameters,
    ConnectionQuery,
    ConnectionRequestParameters,
    WalletConnectionQuery,
    out_of_band_options,
    with_delivery_states,
)
from connections.didcomm.message import Message
from connections.hosted_peers import own_connections
from connections.models import BasicMessage, Connection
from connections.protocols import (
    basic_message,
    handshakes,
    held_requests,
    out_of_band,
    public_dids,
)
from core.api.long_poll import PREFER
from core.api.negotiation import JSONParser
from core.api.notes import NotesParameters, notes_in
from core.api.openapi.operation import form_or_json, operation
from core.api.pagination import list_parameters
from core.api.views import View, get_or_404, or_404
from core.errors import Conflict, Invalid
from tenants.models import Scope, Tenant
from wallets.api.wallets import WalletView
from wallets.models import Wallet


def get_connection(wallet: Wallet, connection_id: str) -> Connection:
    """A connection of this wallet, or 404; not one of a connectionless exchange."""
    hosted_id = None if wallet.is_organization else wallet.wallet_id
    found = find_in_scope(wallet.tenant_id, connection_id, hosted_id)
    return or_404(found, Connection, connection_id)


def create_invitation(wallet: Wallet, body: dict[str, Any]) -> Connection:
    """Create the invitation that a valid body asks for, and the options of its link.

    400 `invalid_request` for a key that only an organization's own wallet has; 409
    `connection_id_taken`.
    """
    for name in ("reuse", "usePublicDid"):
        if body.get(name) and not wallet.is_organization:
            message = f"A hosted wallet has no key that stays: leave `{name}` out."
            raise Invalid("invalid_request", message, {name: [message]})
    chosen = body.get("connectionId")
    invite = partial(
        handshakes.invite,
        wallet,
        connection_id=chosen,
        name=body.get("name", ""),
        multi_party=body.get("multiParty", False),
        options=out_of_band_options(body, out_of_band.HANDSHAKE_VERSIONS),
        exchange_version=body.get("exchangeVersion", ""),
        attachment_format=body.get("attachmentFormat", ""),
        confirms=body.get("confirmConnections", False),
        by_public_did=body.get("usePublicDid", False),
        notes=notes_in(body),
    )
    columns = link_options.read_link_options(wallet.tenant, body)
    try:
        return link_options.create_with_options(invite, columns)
    except IntegrityError:
        raise Conflict(
            "connection_id_taken", f"The connectionId {chosen} is taken."
        ) from None


def invite(view: View, wallet: Wallet) -> Connection:
    """The connection with the invitation that the body of this call asks for."""
    body = view.parse_body(ConnectionInvitationParameters)
    # Before perform(), as it reads a network outside of transactions.
    if body.get("usePublicDid") and wallet.is_organization:
        public_dids.require_resolvable_did(wallet)
    return view.perform(create_invitation, wallet, body)


def read_invitation(given: str, tenant: Tenant) -> Message:
    """The invitation in a link, base64 or JSON.

    It may be fetched over the network: call this outside of transactions.
    """
    check = partial(out_of_band.read_invitation, tenant=tenant)
    return given_messages.resolve_message(given, "invitation", check, tenant)


def request_connection(view: View, wallet: Wallet) -> Connection:
    """The connection that a request to the DID in the body of this call makes.

    It is read again: a hosted owner has answered by now. 400 `did_not_resolved`.
    """
    body = view.parse_body(ConnectionRequestParameters)
    notes = notes_in(body)
    asked = {name: body[name] for name in body.keys() - notes.keys()}
    try:
        made = view.perform(
            public_dids.request_connection, wallet, **asked, notes=notes
        )
    except resolver.DidNotResolved as error:
        raise error.as_invalid("did") from None
    return get_connection(wallet, made.connection_id)


def accept_held_request(view: View, wallet: Wallet, connection_id: str) -> Connection:
    """Accept the held request of a connection, and return the connection.

    It is read again: a hosted peer has got the response, and the state has changed.
    """
    view.perform(held_requests.accept_request, get_connection(wallet, connection_id))
    return get_connection(wallet, connection_id)


def send_text(view: View, wallet: Wallet) -> Response:
    """Send the text in the body of this call."""
    body = view.parse_body(BasicMessageParameters)
    connection = get_connection(wallet, body["connectionId"])
    sent = view.perform(basic_message.send_text, connection, body["text"])

    def read() -> BasicMessage:
        [row] = with_delivery_states([texts_of(wallet).get(pk=sent.pk)])
        return row

    return view.changed_response(BasicMessageRecord, read)


def texts_of(wallet: Wallet) -> QuerySet[BasicMessage]:
    """The texts of all connections of a wallet."""
    written = BasicMessage.of_live_connections().filter(wallet=wallet)
    return written.select_related("connection")


def list_texts(view: View, wallet: Wallet, connection_id: str) -> Response:
    connection = get_connection(wallet, connection_id)
    rows = texts_of(wallet).filter(connection=connection)
    return view.list_response(BasicMessageRecord, rows, BasicMessageQuery)


class OrganizationView(View):
    """A view inside the organization's own wallet."""

    @property
    def wallet(self) -> Wallet:
        return self.caller.wallet


class Connections(OrganizationView):
    @operation(
        "createConnection",
        Scope.CONNECT,
        request=ConnectionInvitationParameters,
        response=ConnectionContract,
    )
    def create(self, request: Request) -> Response:
        return self.to_response(ConnectionContract, invite(self, self.wallet))

    @operation(
        "requestConnection",
        Scope.CONNECT,
        request=ConnectionRequestParameters,
        response=ConnectionContract,
    )
    def request_by_did(self, request: Request) -> Response:
        return self.to_response(
            ConnectionContract, request_connection(self, self.wallet)
        )

    @operation(
        "listConnections",
        Scope.READ,
        response=ConnectionContract(many=True),
        parameters=list_parameters(ConnectionQuery),
    )
    def list(self, request: Request) -> Response:
        return self.list_response(
            ConnectionContract, own_connections(self.wallet), ConnectionQuery
        )

    @operation(
        "getConnection", Scope.READ, response=ConnectionContract, parameters=[PREFER]
    )
    def retrieve(self, request: Request, connectionId: str) -> Response:
        return self.wait_for_change(
            ConnectionContract, partial(get_connection, self.wallet, connectionId)
        )

    @operation(
        "updateConnection",
        Scope.CONNECT,
        request=NotesParameters,
        response=ConnectionContract,
    )
    def update(self, request: Request, connectionId: str) -> Response:
        return self.change_notes(
            ConnectionContract, partial(get_connection, self.wallet, connectionId)
        )

    @operation("acceptConnection", Scope.CONNECT, response=ConnectionContract)
    def confirm_request(self, request: Request, connectionId: str) -> Response:
        found = accept_held_request(self, self.wallet, connectionId)
        return self.to_response(ConnectionContract, found)

    @operation("deleteConnection", Scope.CONNECT)
    def destroy(self, request: Request, connectionId: str) -> Response:
        held_requests.refuse_or_remove(get_connection(self.wallet, connectionId))
        return Response()


class Messages(OrganizationView):
    @operation(
        "sendMessage",
        Scope.CONNECT,
        request=BasicMessageParameters,
        response=BasicMessageRecord,
    )
    def create(self, request: Request) -> Response:
        return send_text(self, self.wallet)

    @operation(
        "listMessages",
        Scope.READ,
        response=BasicMessageRecord(many=True),
        parameters=list_parameters(BasicMessageQuery),
    )
    def list(self, request: Request, connectionId: str) -> Response:
        return list_texts(self, self.wallet, connectionId)

    @operation("getMessage", Scope.READ, response=BasicMessageContract)
    def retrieve(self, request: Request, messageId: str) -> Response:
        found = get_or_404(texts_of(self.wallet), messageId)
        return self.to_response(BasicMessageContract, found)


class WalletMessages(WalletView):
    @operation("sendWalletMessage", Scope.WALLETS, request=BasicMessageParameters)
    def create(self, request: Request, walletId: str) -> Response:
        return send_text(self, self.wallet)

    @operation(
        "listWalletMessages",
        Scope.READ,
        response=BasicMessageRecord(many=True),
        parameters=list_parameters(BasicMessageQuery),
    )
    def list(self, request: Request, walletId: str, connectionId: str) -> Response:
        return list_texts(self, self.wallet, connectionId)

    @operation("getWalletMessage", Scope.READ, response=BasicMessageContract)
    def retrieve(self, request: Request, walletId: str, messageId: str) -> Response:
        found = get_or_404(texts_of(self.wallet), messageId)
        return self.to_response(BasicMessageContract, found)


class WalletConnections(WalletView):
    parser_classes = [MultiPartParser, FormParser, JSONParser]

    @operation(
        "createWalletConnection",
        Scope.WALLETS,
        request={"application/json": ConnectionInvitationParameters},
        response=ConnectionContract,
    )
    def create(self, request: Request, walletId: str) -> Response:
        return self.to_response(ConnectionContract, invite(self, self.wallet))

    @operation(
        "acceptInvitation",
        Scope.WALLETS,
        request=form_or_json(AcceptInvitationParameters),
        response=ConnectionContract,
    )
    def accept(self, request: Request, walletId: str) -> Response:
        wallet = self.wallet
        given = self.parse_body(AcceptInvitationParameters)["invitation"]
        # Before perform(), as a link is read outside of transactions.
        invitation = read_invitation(given, wallet.tenant)
        accepted = self.perform(handshakes.accept_invitation, wallet, invitation)
        # Read again: a hosted inviter has answered by now. If it has refused, a repeated
        # call with the same Idempotency-Key finds and does the same.
        connection = get_connection(wallet, accepted.connection_id)
        if connection.problem:
            error = handshakes.request_refused_error(connection)
            connection.remove()
            raise error
        return self.to_response(ConnectionContract, connection)

    @operation(
        "requestWalletConnection",
        Scope.WALLETS,
        request={"application/json": ConnectionRequestParameters},
        response=ConnectionContract,
    )
    def request_by_did(self, request: Request, walletId: str) -> Response:
        return self.to_response(
            ConnectionContract, request_connection(self, self.wallet)
        )

    @operation(
        "listWalletConnections",
        Scope.READ,
        response=ConnectionContract(many=True),
        parameters=list_parameters(WalletConnectionQuery),
    )
    def list(self, request: Request, walletId: str) -> Response:
        rows = own_connections(self.wallet).filter(state=Connection.State.CONNECTED)
        return self.list_response(ConnectionContract, rows, WalletConnectionQuery)

    @operation(
        "listInvitations",
        Scope.READ,
        response=ConnectionContract(many=True),
        parameters=list_parameters(WalletConnectionQuery),
    )
    def list_invitations(self, request: Request, walletId: str) -> Response:
        rows = own_connections(self.wallet).exclude(state=Connection.State.CONNECTED)
        return self.list_response(ConnectionContract, rows, WalletConnectionQuery)

    @operation(
        "getWalletConnection",
        Scope.READ,
        response=ConnectionContract,
        parameters=[PREFER],
    )
    def retrieve(self, request: Request, walletId: str, connectionId: str) -> Response:
        def find() -> Connection:
            found = find_in_scope(self.tenant.pk, connectionId, walletId)
            # One query for a hosted wallet, and no second one for the wallet itself. If
            # there is no wallet of this id, the 404 is about the wallet.
            return found or get_connection(self.wallet, connectionId)

        return self.wait_for_change(ConnectionContract, find)

    @operation(
        "updateWalletConnection",
        Scope.WALLETS,
        request={"application/json": NotesParameters},
        response=ConnectionContract,
    )
    def update(self, request: Request, walletId: str, connectionId: str) -> Response:
        return self.change_notes(
            ConnectionContract, partial(get_connection, self.wallet, connectionId)
        )

    @operation("acceptWalletConnection", Scope.WALLETS, response=ConnectionContract)
    def confirm_request(
        self, request: Request, walletId: str, connectionId: str
    ) -> Response:
        found = accept_held_request(self, self.wallet, connectionId)
        return self.to_response(ConnectionContract, found)

    @operation("deleteWalletConnection", Scope.WALLETS)
    def destroy(self, request: Request, walletId: str, connectionId: str) -> Response:
        held_requests.refuse_or_remove(get_connection(self.wallet, connectionId))
        return Response()
