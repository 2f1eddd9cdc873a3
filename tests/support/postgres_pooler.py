"""A small pooler with PostgreSQL's protocol, which works like PgBouncer.

It accepts every login, reports its own process id, and assigns a session of the server
to each connection (`session`) or to each transaction (`transaction`).
"""

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from threading import Lock, Thread

import psycopg

IDLE = b"I"  # the status of a session outside of a transaction


class Session:
    """A session of the server, as raw bytes."""

    def __init__(self, url: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.socket = socket.socket(fileno=os.dup(self.connection.fileno()))
        self.socket.setblocking(True)

    def end(self) -> None:
        self.socket.close()
        self.connection.close()


class Pooler:
    def __init__(self, url: str, mode: str) -> None:
        self.url, self.mode = url, mode
        self.idle: list[Session] = []
        self.lock = Lock()

    def take(self) -> Session:
        with self.lock:
            return self.idle.pop() if self.idle else Session(self.url)

    def give_back(self, session: Session) -> None:
        with self.lock:
            self.idle.append(session)

    def serve(self, client: socket.socket) -> None:
        session = None
        with client, contextlib.suppress(ConnectionError):
            greet(client)
            while True:
                request = read_request(client)
                if request[:1] == b"X":
                    break
                session = session or self.take()
                session.socket.sendall(request)
                status = relay_answer(session.socket, client)
                if self.mode == "transaction" and status == IDLE:
                    self.give_back(session)
                    session = None
        if session:
            session.end()


def greet(client: socket.socket) -> None:
    [length] = struct.unpack("!I", exactly(client, 4))
    startup = exactly(client, length - 4)
    if startup[:4] == struct.pack("!I", 80877103):  # a request for TLS
        client.sendall(b"N")
        greet(client)
        return
    parameters = {
        "client_encoding": "UTF8",
        "server_version": "18.0",
        "TimeZone": "UTC",
        "standard_conforming_strings": "on",
    }
    client.sendall(message(b"R", struct.pack("!I", 0)))
    for name, value in parameters.items():
        client.sendall(message(b"S", f"{name}\0{value}\0".encode()))
    client.sendall(message(b"K", struct.pack("!II", 1, 2)))
    client.sendall(message(b"Z", IDLE))


def read_request(client: socket.socket) -> bytes:
    """Read messages up to a Query, Sync or Terminate, which needs a response."""
    request = b""
    while True:
        kind, body = read(client)
        request += message(kind, body)
        if kind in (b"Q", b"S", b"X"):
            return request


def relay_answer(server: socket.socket, client: socket.socket) -> bytes:
    """Relay the response. Return the status of the transaction after it."""
    while True:
        kind, body = read(server)
        client.sendall(message(kind, body))
        if kind == b"Z":
            return body


def read(source: socket.socket) -> tuple[bytes, bytes]:
    kind, length = struct.unpack("!cI", exactly(source, 5))
    return kind, exactly(source, length - 4)


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def exactly(source: socket.socket, number: int) -> bytes:
    data = b""
    while len(data) < number:
        part = source.recv(number - len(data))
        if not part:
            raise ConnectionError
        data += part
    return data


@contextlib.contextmanager
def pooling(url: str, mode: str) -> Iterator[int]:
    """Run a pooler in front of this database. Yields its port.

    Clients close their connections before the block ends.
    """
    pooler = Pooler(url, mode)
    threads: list[Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    serving = Thread(target=pooler.serve, args=[client], daemon=True)
                    serving.start()
                    threads.append(serving)

        Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join(10)  # it may give a session back
    for session in pooler.idle:
        session.end()
