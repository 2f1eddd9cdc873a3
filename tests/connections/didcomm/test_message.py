"""Messages that are built here, apart from those in the wire vectors."""

import pytest

from connections.didcomm import message as didcomm
from core.errors import PeerError


@pytest.mark.parametrize(("answered", "report"), [
    ("connections/1.0/request", "connections/1.0/problem_report"),
    ("didexchange/1.1/request", "didexchange/1.1/problem_report"),
    ("out-of-band/1.1/handshake-reuse", "out-of-band/1.1/problem_report"),
    ("trust_ping/1.0/ping", "trust_ping/1.0/problem-report"),
])  # fmt: skip
def test_a_report_has_the_name_that_its_protocol_gives_it(answered, report):
    received = didcomm.read(didcomm.build(answered))
    built = didcomm.problem_report(received, "refused", "The message is refused.")
    assert built["@type"] == didcomm.PREFIX + report


def test_nothing_follows_a_type():
    with pytest.raises(PeerError, match="@type"):
        didcomm.read({"@id": "x", "@type": didcomm.PREFIX + "trust_ping/1.0/ping\n"})
