"""Where the page of a link leads back to, once it is done."""

from agency.core import network_reads
from agency.core.errors import Invalid
from connections.models import Connection
from tenants import branding


def read_return_url(tenant, body):
    """The `returnUrl` of valid LinkParameters, or "". 400 unless it is allowed."""
    url = body.get("returnUrl", "")
    if url and not branding.allows_return(tenant.return_urls or [], url):
        message = (
            "This address is not below one of the organization's return addresses. "
            "Add it to them in the studio or with the provider API (returnUrls)."
        )
        raise Invalid("return_url_not_allowed", message, {"returnUrl": [message]})
    return url


def create_link(create, return_url):
    """Call `create`, which makes an invitation or an exchange with a link."""
    return _create_with(create, return_url) if return_url else create()


@network_reads.atomic_with_reads
def _create_with(create, return_url):
    made = create()
    connection = made if isinstance(made, Connection) else made.connection
    connection.update_columns(return_url=return_url)
    return made
