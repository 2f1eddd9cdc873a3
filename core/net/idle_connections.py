"""Connections that are kept for the next request to the same origin.

A connection is kept only after a complete response, and only for a second: many
servers close an idle connection after a few seconds, and a request that crosses with
that may be lost, which nobody can tell from a request that was processed.
"""

import select
import socket
import ssl
from threading import Lock, Timer
from time import monotonic

import h11

from core.net.addresses import Origin

MAX_HEAD_BYTES = 64 * 1024  # of a response
MAX_IDLE = 64  # connections of this process
IDLE_SECONDS = 1.0
# From this age on it is closed. The next one looks the host up again, and its
# addresses are checked again.
MAX_AGE_SECONDS = 60.0


class Connection:
    """A connected socket, with the state of HTTP/1.1 on it."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.address: str = connected.getpeername()[0]
        self.protocol = h11.Connection(
            h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES
        )
        self.opened_at = monotonic()
        self.idle_since = 0.0

    def close(self) -> None:
        self.socket.close()

    def start_idle(self) -> bool:
        """Prepare for another request. Return False if this was the last one.

        Bytes after the response belong to no request. They must not be read as the
        response to the next one.
        """
        self.idle_since = monotonic()
        if self.idle_since - self.opened_at >= MAX_AGE_SECONDS:
            return False
        states = {self.protocol.our_state, self.protocol.their_state}
        if states != {h11.DONE} or self.protocol.trailing_data[0]:
            return False
        if isinstance(self.socket, ssl.SSLSocket) and self.socket.pending():
            return False
        self.protocol.start_next_cycle()
        return True

    def is_usable(self) -> bool:
        """Whether it was idle for a short time, and the other side is silent.

        Anything to read is the end of the connection, or belongs to no request.
        """
        if monotonic() - self.idle_since >= IDLE_SECONDS:
            return False
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return not poll.poll(0)


class IdleConnections:
    """The idle connections of this process by origin. Safe for threads."""

    def __init__(self) -> None:
        self._by_origin: dict[Origin, list[Connection]] = {}  # oldest first
        self._lock = Lock()
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return sum(map(len, self._by_origin.values()))

    def take(self, origin: Origin) -> Connection | None:
        """Return the connection that was used last, or None if none is usable."""
        while True:
            with self._lock:
                connections = self._by_origin.get(origin)
                if not connections:
                    return None
                connection = connections.pop()
                if not connections:
                    del self._by_origin[origin]
            if connection.is_usable():
                return connection
            connection.close()

    def put_back(self, origin: Origin, connection: Connection) -> None:
        """Keep the connection, or close it if it is not fit for another request."""
        if connection.start_idle():
            with self._lock:
                if len(self) < MAX_IDLE:
                    self._by_origin.setdefault(origin, []).append(connection)
                    self._start_timer()
                    return
        connection.close()

    def _start_timer(self) -> None:
        """Close idle connections later, even if no other call is made."""
        if self._timer is None:
            self._timer = Timer(IDLE_SECONDS, self._close_old)
            self._timer.daemon = True
            self._timer.start()

    def _close_old(self) -> None:
        end = monotonic() - IDLE_SECONDS
        with self._lock:
            self._timer = None
            for origin, connections in list(self._by_origin.items()):
                while connections and connections[0].idle_since <= end:
                    connections.pop(0).close()
                if not connections:
                    del self._by_origin[origin]
            if self._by_origin:
                self._start_timer()
