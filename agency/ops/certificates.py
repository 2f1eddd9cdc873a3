"""When the certificates end by which others know this installation."""

import socket
import ssl
import time
from datetime import UTC, datetime
from urllib.parse import urlsplit

import certifi
from django.conf import settings
from django.db.models import Min

from agency.ops.health import Probe
from core.database import clock
from wallets.models import SigningKey

CALL_SECONDS = 4.0
KEPT_SECONDS = 3600.0


def read_public_end() -> datetime | None:
    """Return when the certificate of PUBLIC_URL ends, asked over the network.

    None if PUBLIC_URL has no TLS. Raises OSError if it does not answer, and of that
    ssl.SSLCertVerificationError if its certificate is not trusted.
    """
    public = urlsplit(settings.PUBLIC_URL)
    if public.scheme != "https":
        return None
    address = (public.hostname or "", public.port or 443)
    context = ssl.create_default_context(cafile=certifi.where())
    with (
        socket.create_connection(address, CALL_SECONDS) as plain,
        context.wrap_socket(plain, server_hostname=address[0]) as secured,
    ):
        end = str((secured.getpeercert() or {})["notAfter"])
    return datetime.fromtimestamp(ssl.cert_time_to_seconds(end), UTC)


class PublicCertificate:
    """The end of PUBLIC_URL's certificate, asked again KEPT_SECONDS later."""

    def __init__(self) -> None:
        self.probe = Probe(self.ask)
        self.asked_at: float | None = None
        self.ends_at: datetime | None = None

    def ask(self) -> None:
        self.asked_at = time.monotonic()
        try:
            self.ends_at = read_public_end()
        except ssl.SSLCertVerificationError:
            self.ends_at = clock.now()  # no better than one that has ended
        except OSError:
            self.ends_at = None  # as from a host that cannot reach it

    def seconds_left(self) -> float | None:
        """Return the last answer at once; None if none is known."""
        if self.asked_at is None or time.monotonic() - self.asked_at > KEPT_SECONDS:
            self.probe.start()
        return seconds_until(self.ends_at) if self.ends_at else None


def read_signing_end() -> datetime | None:
    """Return when the first certificate ends by which wallets know an organization."""
    kept = SigningKey.objects.filter(tenant__deleted_at=None, tenant__frozen_at=None)
    found: datetime | None = kept.aggregate(end=Min("ends_at"))["end"]
    return found


def seconds_until(moment: datetime) -> float:
    return (moment - clock.now()).total_seconds()


public_certificate = PublicCertificate()
