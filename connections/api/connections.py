"""Connections in the credentials API and in the wallet API."""

from functools import partial

from django.db import IntegrityError, transaction
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.parsers import FormParser, MultiPartParser
from rest_framework.response import Response

from agency.api.long_poll import PREFER
from agency.api.negotiation import JSONParser
from agency.api.pagination import parameters
from agency.api.views import View, get_or_404, or_404
from agency.core.errors import Conflict
from connections.api import links
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
    terms,
)
from connections.models import BasicMessage, Connection
from connections.protocols import out_of_band
from wallets.api.wallets import WalletView
from wallets.models import Wallet

INVITED = OpenApiExample(
    "An invitation",
    {
        "connectionId": "0196f3a1-1111-7000-8000-000000000001",
        "state": "Invited",
        "invitation": "eyJAdHlwZSI6ICJodHRwczovL2RpZGNvbW0ub3JnL2Nvbm5lY3Rpb25zLzEu…",
        "invitationUrl": "https://agency.example/i/3q2-7wAbCdEfGhIjKlMnOp",
        "createdAtUtc": "2026-01-31T08:00:00.000000Z",
        "multiParty": False,
    },
    response_only=True,
)
NAMED = OpenApiExample("Named", {"name": "Rex"}, request_only=True)
BY_OUT_OF_BAND = OpenApiExample(
    "Out of band",
    {
        "protocol": "out-of-band",
        "handshakes": ["didexchange/1.1", "connections/1.0"],
        "goalCode": "issue-vc",
        "goal": "To issue a dog licence",
        "reuse": True,
    },
    request_only=True,
)
CONNECTED = OpenApiExample(
    "Connected",
    {
        "connectionId": "0196f3a1-1111-7000-8000-000000000002",
        "name": "Registry office",
        "myDid": "2NW27jTLopL5zrDKb1Mmx5",
        "theirDid": "V4SGRU86Z58d6TV7PBUe6f",
        "myKey": "kLAQgihHxLWfmSWgbKTqb99Cn6t2nsiA8SULbA1mLi1",
        "theirKey": "5R6FVbR8FbxiGUj4zZgM6KAhjjLpNJnTSy12bim45a4k",
        "state": "Connected",
        "endpoint": {
            "did": "V4SGRU86Z58d6TV7PBUe6f",
            "verkey": ["5R6FVbR8FbxiGUj4zZgM6KAhjjLpNJnTSy12bim45a4k"],
            "uri": "https://agency.example/didcomm",
        },
        "createdAtUtc": "2026-01-31T08:00:00.000000Z",
        "multiParty": False,
    },
    response_only=True,
)


def of(wallet):
    rows = wallet.connections.filter(connectionless=False)
    return rows.select_related("my_key", "invitation_key")


def one(wallet, connection_id):
    return or_404(of(wallet).filter(connection_id=connection_id).first(), Connection)


def invite(wallet, body):
    chosen = body.get("connectionId")
    try:
        with transaction.atomic():
            return Connection.invite(
                wallet,
                chosen,
                body.get("name", ""),
                body.get("multiParty", False),
                terms(body, out_of_band.HANDSHAKES),
                body.get("exchangeVersion", ""),
            )
    except IntegrityError:
        raise Conflict(
            "connection_id_taken", f"The connectionId {chosen} is taken."
        ) from None


class OrganizationView(View):
    """A view inside the organization's own wallet."""

    @property
    def wallet(self):
        return Wallet.objects.select_related("tenant").get(
            tenant=self.tenant, is_organization=True
        )


@extend_schema(tags=["Connections"])
class Connections(OrganizationView):
    @extend_schema(
        operation_id="createConnection",
        summary="Invite somebody",
        request=ConnectionInvitationParameters,
        responses=ConnectionContract,
        examples=[INVITED, NAMED, BY_OUT_OF_BAND],
    )
    def create(self, request):
        body = self.parse_body(ConnectionInvitationParameters)
        return self.to_response(
            ConnectionContract, self.perform(invite, self.wallet, body)
        )

    @extend_schema(
        operation_id="listConnections",
        summary="List connections, newest first",
        parameters=parameters(ConnectionQuery),
        responses=ConnectionContract(many=True),
        examples=[CONNECTED],
    )
    def list(self, request):
        return self.list_response(ConnectionContract, of(self.wallet), ConnectionQuery)

    @extend_schema(
        operation_id="getConnection",
        summary="Read a connection",
        parameters=[PREFER],
        responses=ConnectionContract,
        examples=[CONNECTED],
    )
    def retrieve(self, request, connectionId):
        return self.wait_for_change(
            ConnectionContract, partial(one, self.wallet, connectionId)
        )

    @extend_schema(
        operation_id="deleteConnection",
        summary="Delete a connection; what is open on it is declined",
        request=None,
        responses=None,
    )
    def destroy(self, request, connectionId):
        one(self.wallet, connectionId).remove()
        return Response()


MESSAGE = {
    "connectionId": "0196f3a1-1111-7000-8000-000000000001",
    "text": "Please bring the old licence.",
    "direction": "Outgoing",
}
MOMENT = "2026-01-31T08:00:00.000000Z"


@extend_schema(tags=["Messages"])
class Messages(OrganizationView):
    @property
    def rows(self):
        written = BasicMessage.objects.filter(
            tenant=self.tenant, wallet__is_organization=True
        )
        return written.select_related("connection")

    @extend_schema(
        operation_id="sendMessage",
        summary="Write to a connection",
        request=BasicMessageParameters,
        responses=None,
        examples=[
            OpenApiExample(
                "A text",
                {"connectionId": MESSAGE["connectionId"], "text": MESSAGE["text"]},
                request_only=True,
            )
        ],
    )
    def create(self, request):
        body = self.parse_body(BasicMessageParameters)
        self.perform(
            BasicMessage.send, one(self.wallet, body["connectionId"]), body["text"]
        )
        return Response()

    @extend_schema(
        operation_id="listMessages",
        summary="List the messages of a connection, newest first",
        parameters=parameters(BasicMessageQuery),
        responses=BasicMessageRecord(many=True),
        examples=[
            OpenApiExample(
                "A text",
                {
                    "id": "0196f3a6-6666-7000-8000-000000000003",
                    "typeName": "BasicMessageRecord",
                    "sentTime": MOMENT,
                    "createdAtUtc": MOMENT,
                    "updatedAtUtc": MOMENT,
                    **MESSAGE,
                },
                response_only=True,
            )
        ],
    )
    def list(self, request, connectionId):
        connection = one(self.wallet, connectionId)
        rows = self.rows.filter(connection=connection)
        return self.list_response(BasicMessageRecord, rows, BasicMessageQuery)

    @extend_schema(
        operation_id="getMessage",
        summary="Read a message",
        responses=BasicMessageContract,
        examples=[
            OpenApiExample(
                "A text", {"timestamp": MOMENT, **MESSAGE}, response_only=True
            )
        ],
    )
    def retrieve(self, request, messageId):
        return self.to_response(BasicMessageContract, get_or_404(self.rows, messageId))


@extend_schema(tags=["Wallet connections"])
class WalletConnections(WalletView):
    parser_classes = [MultiPartParser, FormParser, JSONParser]

    @extend_schema(
        operation_id="acceptInvitation",
        summary="Accept an invitation",
        request={"multipart/form-data": AcceptInvitationParameters},
        responses=ConnectionContract,
        examples=[CONNECTED],
    )
    def accept(self, request, walletId):
        wallet = self.wallet
        given = self.parse_body(AcceptInvitationParameters)["invitation"]
        invitation = links.resolve(given, "invitation", out_of_band.read)
        accepted = self.perform(Connection.accept, wallet, invitation)
        connection = one(wallet, accepted.connection_id)
        if connection.problem:
            error = connection.request_refused()
            connection.remove()
            raise error
        return self.to_response(ConnectionContract, connection)

    @extend_schema(
        operation_id="listWalletConnections",
        summary="List what the wallet is connected to",
        parameters=parameters(WalletConnectionQuery),
        responses=ConnectionContract(many=True),
        examples=[CONNECTED],
    )
    def list(self, request, walletId):
        rows = of(self.wallet).filter(state=Connection.State.CONNECTED)
        return self.list_response(ConnectionContract, rows, WalletConnectionQuery)

    @extend_schema(
        operation_id="listInvitations",
        summary="List what is not connected yet",
        parameters=parameters(WalletConnectionQuery),
        responses=ConnectionContract(many=True),
        examples=[CONNECTED],
    )
    def invitations(self, request, walletId):
        rows = of(self.wallet).exclude(state=Connection.State.CONNECTED)
        return self.list_response(ConnectionContract, rows, WalletConnectionQuery)

    @extend_schema(
        operation_id="getWalletConnection",
        summary="Read a connection of the wallet",
        parameters=[PREFER],
        responses=ConnectionContract,
        examples=[CONNECTED],
    )
    def retrieve(self, request, walletId, connectionId):
        return self.wait_for_change(
            ConnectionContract, partial(one, self.wallet, connectionId)
        )

    @extend_schema(
        operation_id="deleteWalletConnection",
        summary="Delete a connection of the wallet",
        request=None,
        responses=None,
    )
    def destroy(self, request, walletId, connectionId):
        one(self.wallet, connectionId).remove()
        return Response()
