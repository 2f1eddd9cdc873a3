"""Links that can be used for a limited time (Connection.expires_at)."""

from agency.core.errors import Conflict
from connections.models import Connection


class LinkExpired(Conflict):
    """409 `link_expired`: too late to accept what is in the link."""

    def __init__(self) -> None:
        super().__init__("link_expired", "The link has expired. Ask for a new one.")


def require_unexpired(connection: Connection) -> None:
    """Raise LinkExpired if nobody can accept the link any more."""
    if connection.is_expired:
        raise LinkExpired
