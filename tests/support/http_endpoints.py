"""Foreign endpoints on loopback, well and badly behaved, with raw sockets."""

import contextlib
import datetime
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: "


@contextlib.contextmanager
def serving(
    *behave: Callable[[socket.socket], None], context: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Run a server whose connections these functions handle, one each.

    Yields its host and port.
    """
    opened: list[socket.socket] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for meet in behave:
                with contextlib.suppress(OSError):
                    client, _ = server.accept()
                    with (
                        context.wrap_socket(client, True)
                        if context
                        else client as connection
                    ):
                        opened.append(connection)
                        meet(connection)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        # On Linux, `accept` and whatever waits for a connection return at once.
        for one in (server, *opened):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        server.close()
        thread.join(5)


def answers(
    data: bytes, then: bytes = b"", pause: float = 0.0
) -> Callable[[socket.socket], None]:
    """Read the request and send these bytes, then `then` again and again."""

    def meet(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(data)
        while then:
            connection.sendall(then)
            time.sleep(pause)

    return meet


def trickles(data: bytes, then: bytes = b"x") -> Callable[[socket.socket], None]:
    """Read the request and send these bytes, then `then` every 20th of a second."""
    return answers(data, then, pause=0.05)


def floods(data: bytes, piece: bytes) -> Callable[[socket.socket], None]:
    """Read the request and send these bytes, then the piece without a pause."""
    return answers(data, piece)


def sleeps(connection: socket.socket) -> None:
    """Neither read nor respond, until the server is closed."""
    end = select.poll()
    end.register(connection, 0)  # no event but the end of the connection
    end.poll(20_000)


def hangs(connection: socket.socket) -> None:
    """Read, and never respond."""
    while connection.recv(65536):
        pass


def certificate(folder: Path, *names: str) -> tuple[Path, ssl.SSLContext]:
    """Create a self-signed certificate for hosts.

    Return the file to trust, and the context of the server.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder(
            subject, subject, key.public_key(), x509.random_serial_number()
        )
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName(name) for name in names]),
            critical=False,
        )
        .sign(key, hashes.SHA256())
    )
    pem, private = serialization.Encoding.PEM, folder / "key.pem"
    (folder / "certificate.pem").write_bytes(made.public_bytes(pem))
    private.write_bytes(
        key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", private)
    return folder / "certificate.pem", context
