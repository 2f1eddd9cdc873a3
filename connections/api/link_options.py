"""What a caller chooses for a new link: its end, where it leads back to, for whom."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypedDict, TypeVar

from connections.exchange import Exchange
from connections.models import Connection
from core.errors import Invalid
from core.work import network_reads
from tenants import branding
from tenants.models import Tenant

Made = TypeVar("Made", bound=Connection | Exchange)


class LinkColumns(TypedDict, total=False):
    return_url: str
    expires_at: datetime
    name: str


def read_link_options(tenant: Tenant, body: Mapping[str, Any]) -> LinkColumns:
    """Return the chosen columns of a new link, from valid LinkParameters.

    {} if none is chosen. 400 `return_url_not_allowed` unless `returnUrl` is below one
    of the organization's return addresses.
    """
    url = body.get("returnUrl", "")
    if url and not branding.allows_return(tenant.return_urls or [], url):
        message = (
            "This address is not below one of the organization's return addresses. "
            "Add it to them in the studio or with the provider API (returnUrls)."
        )
        raise Invalid("return_url_not_allowed", message, {"returnUrl": [message]})
    chosen: LinkColumns = {}
    if url:
        chosen["return_url"] = url
    if end := body.get("expiresAt"):
        chosen["expires_at"] = end
    if name := body.get("recipientName"):
        chosen["name"] = name
    return chosen


def create_with_options(create: Callable[[], Made], columns: LinkColumns) -> Made:
    """Call `create`, which makes an invitation or an exchange with a link.

    Return what it made. columns: of read_link_options(). With any, they are set in the
    same transaction, which is run again after each network read: `create` may be
    called several times.
    """
    return _create_and_update(create, columns) if columns else create()


@network_reads.atomic_with_reads
def _create_and_update(create: Callable[[], Made], columns: LinkColumns) -> Made:
    made = create()
    if isinstance(made, Connection):
        made.update_columns(**columns)
    else:
        end = columns.get("expires_at")
        assert made.connection, "it was made with its connection"
        made.connection.update_columns(**columns, expiry_due_at=end)
    return made
