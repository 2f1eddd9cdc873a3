"""The three kinds of objects that have an exchange page, and how they are found."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404

from connections.models import Connection
from credentials.models import Credential
from tenants.models import Tenant
from verifications.models import Verification

KEYS = ("my_key", "other_key", "invitation_key")


@dataclass(frozen=True)
class Kind:
    """name: also that of the route. related: what the page reads with the object."""

    name: str
    model: Any
    related: tuple[str, ...]

    @property
    def plural(self) -> str:
        return f"{self.name}s"

    def with_related(self) -> QuerySet[Any]:
        return self.model.objects.select_related(*self.related)

    def get_or_404(self, tenant: Tenant, object_id: UUID) -> Any:
        """An object of the organization, with the organization as it is loaded."""
        row = get_object_or_404(self.with_related().filter(tenant=tenant), pk=object_id)
        row.tenant = tenant
        return row


EXCHANGE_RELATED = ("wallet", "connection", *(f"connection__{key}" for key in KEYS))
CONNECTION = Kind("connection", Connection, ("wallet", *KEYS))
CREDENTIAL = Kind("credential", Credential, EXCHANGE_RELATED)
VERIFICATION = Kind("verification", Verification, EXCHANGE_RELATED)
KINDS = {kind.name: kind for kind in (CONNECTION, CREDENTIAL, VERIFICATION)}


def connection_of(row: Any) -> Connection | None:
    """Return the connection of an exchange, or the connection itself.

    None once the connection was deleted.
    """
    return row if isinstance(row, Connection) else row.connection
