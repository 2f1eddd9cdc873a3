"""How fast envelopes may come: from one address, and for one recipient."""

from uuid import uuid4

import pytest

from connections.didcomm import envelope
from connections.models import BasicMessage, InboundMessage
from connections.protocols import trust_ping
from core.errors import TooOften
from core.net.callers import client_address
from core.telemetry.metrics import registry
from core.valkey import rate_limits
from tests.support import queues
from tests.support.errors import assert_error
from tests.support.outside_agent import Agent
from tests.support.races import at_once, error_codes


@pytest.fixture
def elsewhere():
    """An address that nobody has used yet: RFC 3849 and one of its networks."""
    return f"2001:db8:{uuid4().hex[:4]}:{uuid4().hex[:4]}::1"


def pings(phone, number=1, **options):
    data = [phone.pack(phone.build(trust_ping.PING)) for _ in range(number)]
    return [phone.post(one, **options) for one in data]


def refusals_by(by):
    return registry.get_sample_value("agency_rate_refusals_total", {"by": by}) or 0


def time_passes(seconds):
    """Move the times at which all buckets are full again into the past."""
    server = rate_limits.redis_client()
    for key in server.keys(f"{rate_limits.KEY_PREFIX}*"):
        server.set(key, float(server.get(key)) - seconds, keepttl=True)


def test_a_too_fast_address_waits(row, phone, settings, elsewhere, monkeypatch):
    settings.INBOX_PER_ADDRESS, before = 3, refusals_by("address")
    answers = pings(phone, 3, REMOTE_ADDR=elsewhere)
    assert [one.status_code for one in answers] == [202] * 3
    ping = phone.build(trust_ping.PING)
    data = phone.pack(ping)
    with monkeypatch.context() as patch:
        patch.setattr(envelope, "unpack", None)
        late = phone.post(data, REMOTE_ADDR=elsewhere)
    assert_error(late, 429, "too_many_requests")
    assert 1 <= int(late["Retry-After"]) <= 20
    assert refusals_by("address") == before + 1
    assert not InboundMessage.objects.filter(message_id=ping["@id"])
    time_passes(int(late["Retry-After"]))
    assert phone.post(data, REMOTE_ADDR=elsewhere).status_code == 202
    queues.sweep()
    assert InboundMessage.objects.get(message_id=ping["@id"]).status == "done"


def test_a_flood_for_one_hurts_no_other(row, faber, phone, settings, monkeypatch):
    other = phone.with_next_key()
    phone.receives = other.receives
    other.connects(faber)
    settings.INBOX_PER_RECIPIENT, before = 2, refusals_by("recipient")
    monkeypatch.setattr(rate_limits, "KEY_PREFIX", f"{uuid4()}:")
    assert [one.status_code for one in pings(phone, 3)] == [202, 202, 429]
    assert refusals_by("recipient") == before + 1
    assert [one.status_code for one in pings(other)] == [202]


def test_rubbish_for_a_key_costs_its_peers_nothing(row, phone, settings, monkeypatch):
    settings.INBOX_PER_RECIPIENT = 2
    monkeypatch.setattr(rate_limits, "KEY_PREFIX", f"{uuid4()}:")
    data = bytearray(phone.pack(phone.build(trust_ping.PING)))
    middle = data.index(b'"ciphertext"') + 20
    data[middle] = ord("A") if data[middle] != ord("A") else ord("B")
    assert {phone.post(bytes(data)).status_code for _ in range(5)} == {400}
    stranger = Agent()
    stranger.their_key = phone.their_key
    assert [one.status_code for one in pings(stranger, 3)] == [202, 202, 429]
    assert [one.status_code for one in pings(phone, 3)] == [202, 202, 429]


def test_wallets_hosted_here_write_as_fast_as_they_like(faber, met, settings):
    settings.INBOX_PER_RECIPIENT = settings.INBOX_PER_ADDRESS = 1
    for number in range(5):
        body = {"connectionId": met.known_as(faber), "text": str(number)}
        faber.post("/messages", body)
    assert BasicMessage.objects.filter(direction="Incoming").count() == 5


def test_of_many_at_once_as_many_pass_as_may(transactional_db):
    name = str(uuid4())
    answers = at_once(*[lambda: rate_limits.take_token("address", name, 5)] * 12)
    assert error_codes(answers) == ["too_many_requests"] * 7


def test_tokens_come_back_evenly(transactional_db):
    name = str(uuid4())
    for _ in range(2):
        rate_limits.take_token("address", name, 2)
    for seconds in (29, 1):
        with pytest.raises(TooOften):
            rate_limits.take_token("address", name, 2)
        time_passes(seconds)
    rate_limits.take_token("address", name, 2)
    with pytest.raises(TooOften):
        rate_limits.take_token("address", name, 2)


def test_zero_is_no_limit_and_asks_nobody(row, phone, settings, monkeypatch):
    settings.INBOX_PER_RECIPIENT = settings.INBOX_PER_ADDRESS = 0
    monkeypatch.setattr(rate_limits, "redis_client", None)
    assert pings(phone)[0].status_code == 202


def test_without_the_broker_everything_is_taken(row, phone, settings, monkeypatch):
    settings.INBOX_PER_ADDRESS = 1
    try:
        for url in ("redis://127.0.0.1:1/0", "redis://192.0.2.1:6379/0", "nonsense"):
            settings.REDIS_URL = url
            monkeypatch.setattr(rate_limits, "paused_until", 0.0)
            rate_limits.redis_client.cache_clear()
            assert [one.status_code for one in pings(phone, 2)] == [202] * 2
            assert rate_limits.is_paused(), "nobody waits for it again"
    finally:
        rate_limits.redis_client.cache_clear()


def test_whose_address_it_was_is_what_our_own_proxies_say(settings):
    for proxies, forwarded, source in (
        (0, "198.51.100.1", "203.0.113.9"),
        (1, "198.51.100.1", "198.51.100.1"),
        (1, "8.8.8.8, 198.51.100.1", "198.51.100.1"),
        (2, "8.8.8.8, 198.51.100.1, 192.0.2.1", "198.51.100.1"),
        (1, "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        (1, "::ffff:198.51.100.1", "198.51.100.1"),
        (1, "198.51.100.1:50123", "198.51.100.1"),
        (1, "[2001:db8:1:2:3:4:5:6]:50123", "2001:db8:1:2::/64"),
        (1, "[2001:db8:1:2::3]", "2001:db8:1:2::/64"),
        (1, "unknown", "203.0.113.9"),
        (1, "", "203.0.113.9"),
    ):
        settings.TRUSTED_PROXIES = proxies
        meta = {"REMOTE_ADDR": "203.0.113.9", "HTTP_X_FORWARDED_FOR": forwarded}
        assert client_address(meta) == source, (proxies, forwarded)
