"""What a caller chooses for a new link: its end, where it leads back to, for whom."""

from connections.models import Connection
from core.errors import Invalid
from core.work import network_reads
from tenants import branding


def read_link_options(tenant, body):
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
    chosen = {
        "return_url": url,
        "expires_at": body.get("expiresAt"),
        "name": body.get("recipientName"),
    }
    return {name: value for name, value in chosen.items() if value}


def create_with_options(create, columns):
    """Call `create`, which makes an invitation or an exchange with a link.

    Return what it made. columns: of read_link_options(). With any, they are set in the
    same transaction, which is run again after each network read: `create` may be
    called several times.
    """
    return _create_and_update(create, columns) if columns else create()


@network_reads.atomic_with_reads
def _create_and_update(create, columns):
    made = create()
    if isinstance(made, Connection):
        made.update_columns(**columns)
    else:
        end = columns.get("expires_at")
        made.connection.update_columns(**columns, expiry_due_at=end)
    return made
