"""What views of credentials and of verifications share."""

from collections.abc import Mapping
from functools import cache
from typing import Any, Generic
from uuid import UUID

from django.db.models import QuerySet
from rest_framework.response import Response

from connections.api.connections import OrganizationView
from connections.api.scopes import find_in_scope
from connections.exchange import PARTIES, Exchange, Row
from connections.models import Connection
from core.api.pagination import (
    ListQuery,
    cut_page,
    only_columns,
    paginate,
    select_page,
)
from core.api.serializers import Contract
from core.api.views import or_404
from core.database.compiled_sql import CompiledQuery
from core.database.uuids import parse_uuid
from wallets.api.wallets import WalletView

SHOWN_WITH = ("connection",)  # what a contract reads besides the exchange


@cache
def exchange_by_id(
    model: type[Exchange], related: tuple[str, ...]
) -> CompiledQuery[Any]:
    """Return the query by the id alone: whose it is, the caller compares.

    PostgreSQL plans a prepared statement for the usual wallet, which has few exchanges.
    With the wallet as a condition it would read all exchanges of one that has many.
    """
    rows = model.objects.select_related(*related)
    return CompiledQuery(lambda key: rows.filter(pk=key), UUID)


def shown_rows(model: type[Row], conditions: Mapping[str, UUID | str]) -> QuerySet[Row]:
    return model.objects.filter(**conditions).select_related(*SHOWN_WITH)


@cache
def first_page_query(
    model: type[Exchange],
    contract: type[Contract],
    query_class: type[ListQuery],
    names: tuple[str, ...],
) -> CompiledQuery[Any]:
    """The first page of a list without parameters, as a prepared statement.

    names: the columns of its conditions; `wallet`, a UUID, comes first, the others have
    texts.
    """
    query = query_class(data={})
    query.is_valid(raise_exception=True)

    def select_rows(*values: UUID | str) -> QuerySet[Exchange]:
        rows = shown_rows(model, dict(zip(names, values, strict=True)))
        return select_page(only_columns(rows, contract.columns), query)

    return CompiledQuery(select_rows, UUID, *(str for _ in names[1:]))


class ExchangeView(OrganizationView, Generic[Row]):
    """A view of the exchanges of the organization's own wallet."""

    model: type[Row]
    contract: type[Contract]

    @property
    def rows(self) -> QuerySet[Row]:
        """The exchanges to show. Their contract reads the connection too."""
        return shown_rows(self.model, self.row_conditions)

    def rows_of_role(self, role: str) -> QuerySet[Row]:
        """What a list shows: if the organization also has its own wallet's other role
        (`own_wallet_api`), the exchanges of this one, unless the call asks by `role`.
        """
        is_asked = bool(self.request.query_params.get("role"))
        if self.tenant.own_wallet_api and not is_asked:
            return self.rows.filter(role=role)
        return self.rows

    @property
    def row_conditions(self) -> dict[str, UUID | str]:
        """The conditions of the exchanges to show."""
        return {"wallet": self.wallet.pk}

    def get_connection(self, connection_id: str) -> Connection:
        """The connection that a new exchange runs over, or 404."""
        found = self.find_connection(connection_id)
        return or_404(found, Connection, connection_id)

    def get_exchange(
        self, exchange_id: str | UUID, related: tuple[str, ...] = SHOWN_WITH
    ) -> Row:
        """The exchange, or 404, with what its contract reads or the `related` rows."""
        pk = parse_uuid(exchange_id)
        row = self.find_exchange(pk, related) if pk else None
        return or_404(row, self.model, exchange_id)

    def get_with_parties(self, exchange_id: str | UUID) -> Row:
        """The exchange to act on, or 404, with the rows that its functions read."""
        return self.get_exchange(exchange_id, PARTIES)

    def find_connection(self, connection_id: str) -> Connection | None:
        return find_in_scope(self.tenant.pk, connection_id)

    def find_exchange(self, pk: UUID, related: tuple[str, ...]) -> Row | None:
        found = exchange_by_id(self.model, related).first(pk)
        return found if found and found.wallet_id == self.wallet.pk else None

    def exchange_response(self, exchange_id: str | UUID) -> Response:
        """The exchange as it is now. It has moved on if its peer is hosted here."""
        return self.to_response(self.contract, self.get_exchange(exchange_id))

    def change_notes_of_exchange(self, exchange_id: str) -> Response:
        return self.change_notes(self.contract, lambda: self.get_exchange(exchange_id))

    def changed_exchange(self, exchange_id: str | UUID) -> Response:
        """The exchange as it is now, where changed_response() has a body."""
        return self.changed_response(
            self.contract, lambda: self.get_exchange(exchange_id)
        )

    def wait_for_exchange(self, exchange_id: str) -> Response:
        """The exchange; with `Prefer: wait=N`, once its peer has done its part."""
        return self.wait_for_change(
            self.contract, lambda: self.get_exchange(exchange_id)
        )


class WalletExchangeView(WalletView, ExchangeView[Row]):
    """A view of the exchanges of the wallet that the path names.

    held_role: the only one in which the organization's own wallet is seen here.
    """

    held_role: str

    @property
    def row_conditions(self) -> dict[str, UUID | str]:
        wallet = self.wallet
        if wallet.is_organization:
            return {"wallet": wallet.pk, "role": self.held_role}
        return {"wallet": wallet.pk}

    def list_where(self, query_class: type[ListQuery], **conditions: str) -> Response:
        """The response to a list of the exchanges to show that meet the conditions."""
        asked = self.row_conditions | conditions
        query = self.parse_query(query_class)
        if query.is_unfiltered_first_page:
            kinds: Any = (self.model, self.contract, query_class)
            compiled = first_page_query(*kinds, tuple(asked))
            page = cut_page(compiled.all(*asked.values()), query)
        else:
            rows = shown_rows(self.model, asked)
            page = paginate(only_columns(rows, self.contract.columns), query)
        return self.page_response(self.contract, page)

    def find_connection(self, connection_id: str) -> Connection | None:
        if self.own_wallet:
            return find_in_scope(self.tenant.pk, connection_id)
        found = find_in_scope(self.tenant.pk, connection_id, self.kwargs["walletId"])
        if found is None:
            self.wallet  # noqa: B018  # 404 if it is the wallet that there is not
        return found

    def find_exchange(self, pk: UUID, related: tuple[str, ...]) -> Row | None:
        if self.own_wallet:
            found = super().find_exchange(pk, related)
            return found if found and found.role == self.held_role else None
        found = exchange_by_id(self.model, (*related, "wallet")).first(pk)
        if found and not found.wallet.is_organization:
            named = self.tenant.pk, self.kwargs["walletId"]
            if (found.wallet.tenant_id, found.wallet.wallet_id) == named:
                return found
        self.wallet  # noqa: B018  # 404 if it is the wallet that there is not
        return None
