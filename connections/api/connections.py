"""Connections in the credentials API and in the wallet API."""

from functools import partial

from django.db import IntegrityError
from rest_framework.parsers import FormParser, MultiPartParser
from rest_framework.response import Response

from agency.api.long_poll import PREFER
from agency.api.negotiation import JSONParser
from agency.api.openapi.operation import operation
from agency.api.pagination import list_parameters
from agency.api.views import View, get_or_404, or_404
from agency.core.errors import Conflict
from connections.api import links, return_urls
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
    WalletConnectionQuery,
    out_of_band_options,
)
from connections.models import BasicMessage, Connection
from connections.protocols import basic_message, handshakes, out_of_band
from wallets.api.wallets import WalletView


def with_keys(rows):
    rows = rows.filter(connectionless=False)
    return rows.select_related("my_key", "invitation_key")


def connections_of(wallet):
    return with_keys(wallet.connections)


def get_connection(wallet, connection_id):
    hosted_id = None if wallet.is_organization else wallet.wallet_id
    found = find_in_scope(wallet.tenant_id, connection_id, hosted_id)
    return or_404(found, Connection)


def create_invitation(wallet, body):
    chosen = body.get("connectionId")
    invite = partial(
        handshakes.invite,
        wallet,
        connection_id=chosen,
        name=body.get("name", ""),
        multi_party=body.get("multiParty", False),
        options=out_of_band_options(body, out_of_band.HANDSHAKES),
        exchange_version=body.get("exchangeVersion", ""),
    )
    return_url = return_urls.read_return_url(wallet.tenant, body)
    try:
        return return_urls.create_link(invite, return_url)
    except IntegrityError:
        raise Conflict(
            "connection_id_taken", f"The connectionId {chosen} is taken."
        ) from None


class OrganizationView(View):
    """A view inside the organization's own wallet."""

    @property
    def wallet(self):
        return self.request.user.wallet


class Connections(OrganizationView):
    @operation(
        "createConnection",
        request=ConnectionInvitationParameters,
        response=ConnectionContract,
    )
    def create(self, request):
        body = self.parse_body(ConnectionInvitationParameters)
        return self.to_response(
            ConnectionContract, self.perform(create_invitation, self.wallet, body)
        )

    @operation(
        "listConnections",
        response=ConnectionContract(many=True),
        parameters=list_parameters(ConnectionQuery),
    )
    def list(self, request):
        return self.list_response(
            ConnectionContract, connections_of(self.wallet), ConnectionQuery
        )

    @operation("getConnection", response=ConnectionContract, parameters=[PREFER])
    def retrieve(self, request, connectionId):
        return self.wait_for_change(
            ConnectionContract, partial(get_connection, self.wallet, connectionId)
        )

    @operation("deleteConnection")
    def destroy(self, request, connectionId):
        get_connection(self.wallet, connectionId).remove()
        return Response()


class Messages(OrganizationView):
    @property
    def rows(self):
        written = BasicMessage.objects.filter(
            tenant=self.tenant, wallet__is_organization=True
        )
        return written.select_related("connection")

    @operation("sendMessage", request=BasicMessageParameters)
    def create(self, request):
        body = self.parse_body(BasicMessageParameters)
        self.perform(
            basic_message.send_text,
            get_connection(self.wallet, body["connectionId"]),
            body["text"],
        )
        return Response()

    @operation(
        "listMessages",
        response=BasicMessageRecord(many=True),
        parameters=list_parameters(BasicMessageQuery),
    )
    def list(self, request, connectionId):
        connection = get_connection(self.wallet, connectionId)
        rows = self.rows.filter(connection=connection)
        return self.list_response(BasicMessageRecord, rows, BasicMessageQuery)

    @operation("getMessage", response=BasicMessageContract)
    def retrieve(self, request, messageId):
        return self.to_response(BasicMessageContract, get_or_404(self.rows, messageId))


class WalletConnections(WalletView):
    parser_classes = [MultiPartParser, FormParser, JSONParser]

    @operation(
        "acceptInvitation",
        request={"multipart/form-data": AcceptInvitationParameters},
        response=ConnectionContract,
    )
    def accept(self, request, walletId):
        wallet = self.wallet
        given = self.parse_body(AcceptInvitationParameters)["invitation"]
        invitation = links.resolve_message(given, "invitation", out_of_band.read)
        accepted = self.perform(handshakes.accept, wallet, invitation)
        connection = get_connection(wallet, accepted.connection_id)
        if connection.problem:
            error = handshakes.request_refused_error(connection)
            connection.remove()
            raise error
        return self.to_response(ConnectionContract, connection)

    @operation(
        "listWalletConnections",
        response=ConnectionContract(many=True),
        parameters=list_parameters(WalletConnectionQuery),
    )
    def list(self, request, walletId):
        rows = connections_of(self.wallet).filter(state=Connection.State.CONNECTED)
        return self.list_response(ConnectionContract, rows, WalletConnectionQuery)

    @operation(
        "listInvitations",
        response=ConnectionContract(many=True),
        parameters=list_parameters(WalletConnectionQuery),
    )
    def list_invitations(self, request, walletId):
        rows = connections_of(self.wallet).exclude(state=Connection.State.CONNECTED)
        return self.list_response(ConnectionContract, rows, WalletConnectionQuery)

    @operation("getWalletConnection", response=ConnectionContract, parameters=[PREFER])
    def retrieve(self, request, walletId, connectionId):
        def find():
            found = find_in_scope(self.tenant.pk, connectionId, walletId)
            # Without a wallet of this id, the error names the wallet.
            return found or get_connection(self.wallet, connectionId)

        return self.wait_for_change(ConnectionContract, find)

    @operation("deleteWalletConnection")
    def destroy(self, request, walletId, connectionId):
        get_connection(self.wallet, connectionId).remove()
        return Response()
