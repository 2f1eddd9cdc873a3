"""Requests to connect of other agents: one at a time for an organization, in turn.

So many strangers occupy one thread of a process, and other messages pass theirs.
"""

from threading import Lock
from uuid import UUID

from connections.messaging import inbox
from connections.messaging.models import InboundMessage


class Turns:
    """The organizations whose requests this process handles, and who was the last."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.busy: set[UUID] = set()
        self.last: UUID | None = None

    def handle_next(self) -> bool:
        """Handle the next due request. Return False if there is none.

        While a request of an organization is being handled, its others are left to the
        thread that handles that one, which must call this again.
        """
        row = self._claim()
        if row is None:
            return False
        try:
            inbox.process(row)
        finally:
            self.busy.discard(row.tenant_id)
        return True

    def _claim(self) -> InboundMessage | None:
        with self.lock:
            row = InboundMessage.claim_request(self.last, self.busy)
            if row:
                self.last = row.tenant_id
                self.busy.add(row.tenant_id)
        return row


turns = Turns()
