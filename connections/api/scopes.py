"""Whose rows a call of the API may see: queries that are compiled once."""

from collections.abc import Callable
from enum import Enum
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from agency.core.compiled_sql import CompiledQuery


class Scope(Enum):
    """Whose rows a call may see, and the parameters by which a query is told."""

    OF_ORGANIZATION = "the key of the organization's own wallet"
    OF_HOLDER = "the key of the organization and the id of the wallet"

    def query(self, build: Callable[..., QuerySet[Any]], kind: type) -> Any:
        """`build(wallet=…, key)` with these parameters before the one of `kind`."""
        if self is Scope.OF_ORGANIZATION:
            return CompiledQuery(
                lambda wallet, key: build(key).filter(wallet=wallet), UUID, kind
            )
        return CompiledQuery(
            lambda tenant, wallet_id, key: build(key).filter(
                wallet__tenant=tenant,
                wallet__wallet_id=wallet_id,
                wallet__is_organization=False,
            ),
            UUID,
            str,
            kind,
        )
