"""Requests to connect of other agents: one at a time for an organization, in turn.

So they occupy AT_ONCE threads of a process at most, other messages pass theirs, and
nobody waits for all that another place sent before.
"""

from collections import OrderedDict
from threading import Lock
from uuid import UUID

from connections.messaging.models import InboundMessage
from connections.transport import inbox

AT_ONCE = 2  # organizations in one process; a request may wait for a DID document
REMEMBERED = 10_000  # organizations


class Turns:
    """The organizations whose requests this process handles, and whose turn was last.

    last_places: where the last request of each organization came from.
    """

    def __init__(self) -> None:
        self.lock = Lock()
        self.busy: set[UUID] = set()
        self.last_tenant: UUID | None = None
        self.last_places: OrderedDict[UUID, UUID | None] = OrderedDict()

    def handle_next(self) -> bool:
        """Handle the next due request. Return False if there is none for this thread.

        What is left waits for a thread that handles one now, which must call this
        again.
        """
        row = self._claim()
        if row is None:
            return False
        try:
            inbox.process(row)
        finally:
            with self.lock:
                self.busy.discard(row.tenant_id)
        return True

    def _claim(self) -> InboundMessage | None:
        with self.lock:
            if len(self.busy) >= AT_ONCE:
                return None
            row = InboundMessage.claim_request(
                self.last_tenant, self.last_places, self.busy
            )
            if row:
                self.busy.add(row.tenant_id)
                self.last_tenant = row.tenant_id
                self.last_places[row.tenant_id] = row.origin
                self.last_places.move_to_end(row.tenant_id)
                if len(self.last_places) > REMEMBERED:
                    self.last_places.popitem(last=False)
        return row


turns = Turns()
