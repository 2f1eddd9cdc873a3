"""What views of credentials and of verifications share."""

from typing import Any

from django.db.models import QuerySet
from rest_framework.response import Response

from agency.api.serializers import Contract
from agency.api.views import View, get_or_404, or_404
from connections.exchange import PARTIES, Exchange
from connections.models import Connection
from wallets.api.wallets import WalletView
from wallets.models import Wallet


class ExchangeView(View):
    """A view of the exchanges of the organization's own wallet."""

    model: type[Exchange]
    contract: type[Contract]

    @property
    def rows(self) -> QuerySet[Any]:
        """The exchanges to show. Their contract reads the connection too."""
        rows = self.model.objects.filter(
            tenant=self.tenant, wallet__is_organization=True
        )
        return rows.select_related("connection")

    @property
    def connections(self) -> QuerySet[Connection]:
        rows = Connection.objects.filter(
            tenant=self.tenant, wallet__is_organization=True
        )
        return rows.select_related("wallet", "my_key")

    def rows_of_wallet(self, wallet: Wallet) -> QuerySet[Any]:
        return self.model.objects.filter(wallet=wallet).select_related("connection")

    def get_connection(self, connection_id: str) -> Connection:
        """The connection that a new exchange runs over, or 404."""
        rows = self.connections.filter(connectionless=False)
        return or_404(rows.filter(connection_id=connection_id).first(), Connection)

    def get_exchange(self, exchange_id: Any) -> Any:
        """The exchange to show, or 404."""
        return get_or_404(self.rows, exchange_id)

    def get_with_parties(self, exchange_id: Any) -> Any:
        """The exchange to act on, or 404, with the rows that its functions read."""
        return get_or_404(with_parties(self.rows), exchange_id)

    def exchange_response(self, exchange_id: Any) -> Response:
        """The exchange as it is now. It has moved on if its peer is hosted here."""
        return self.to_response(self.contract, self.get_exchange(exchange_id))

    def wait_for_exchange(self, exchange_id: str) -> Response:
        """The exchange; with `Prefer: wait=N`, once its peer has done its part."""
        return self.wait_for_change(
            self.contract, lambda: self.get_exchange(exchange_id)
        )


class WalletExchangeView(WalletView, ExchangeView):
    """A view of the exchanges of the wallet that the path names."""

    @property
    def rows(self) -> QuerySet[Any]:
        return self.rows_of_wallet(self.wallet)

    @property
    def connections(self) -> QuerySet[Connection]:
        return self.wallet.connections.select_related("my_key")

    def get_exchange(self, exchange_id: Any) -> Any:
        rows = self.model.objects.select_related("connection")
        return self.find_in_wallet(lambda found: get_or_404(found, exchange_id), rows)


def with_parties(rows: QuerySet[Any]) -> QuerySet[Any]:
    return rows.select_related(*PARTIES)
