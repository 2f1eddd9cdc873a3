"""Links with an invitation or the first message of an exchange."""

from django.conf import settings

from connections.didcomm import message as didcomm
from connections.didcomm.message import Body
from connections.models import Connection
from connections.protocols import out_of_band
from tenants import vault

# The query parameters that carry a message, in the order in which they are looked for.
QUERY_NAMES = ("oob", "c_i", "d_m")


def shared_message(connection: Connection) -> Body:
    """Return the message in the link: the invitation or an exchange's first message.

    If there are both, the message is attached to the invitation. An exchange's message
    is decrypted in each call. Of two invitations it is the out-of-band one.
    """
    request = shared_request(connection)
    if request and connection.invitation:
        return out_of_band.with_attachment(connection.invitation, request)
    second = connection.out_of_band if connection.link_has_both else None
    return request or second or connection.invitation


def shared_request(connection: Connection) -> Body | None:
    """The first message of an exchange that the link contains, or None.

    None on the invitee's side: its `shared` is the attachment that it has received.
    """
    if connection.role != Connection.Role.INVITER:
        return None
    request: Body | None = vault.unseal(connection, "shared")
    return request


def encoded_message(connection: Connection) -> str:
    """Return the shared message as base64 for a URL: see encode_url()."""
    return didcomm.encode_url(shared_message(connection))


def landing_url(connection: Connection) -> str:
    """The URL to which the short link redirects: it has the message in its query.

    The wallets of the original service read `d_m` there, others `c_i`; those that know
    both look for `c_i` first. Of two invitations each has its own parameter.
    """
    query = message_query(connection)
    url = f"{connection.invitation_url}?{query}"
    if query.startswith("c_i") and not connection.link_has_both:
        url += query.replace("c_i", "&d_m", 1)
    return url


def deep_link(connection: Connection) -> str:
    """The link that opens a wallet app on the same device."""
    if connection.wallet_link:
        return connection.wallet_link
    return f"{settings.DEEP_LINK_SCHEME}://launch/?{message_query(connection)}"


def message_query(connection: Connection) -> str:
    """The query of a link with its message, or with both of its invitations."""
    messages = [shared_message(connection)]
    if connection.link_has_both:
        messages.insert(0, connection.invitation)
    return "&".join(
        f"{query_name(shared)}={didcomm.encode_url(shared)}" for shared in messages
    )


def query_name(shared: Body) -> str:
    """The query parameter for a message, one of QUERY_NAMES."""
    names = {"connections/1/invitation": "c_i", "out-of-band/1/invitation": "oob"}
    return names.get(didcomm.read(shared).major_type, "d_m")
