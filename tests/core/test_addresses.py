"""Which addresses are called and which are refused before any connection."""

import socket
from ipaddress import ip_network
from threading import Event

import pytest

from core.errors import Invalid
from core.net import addresses, http

INSIDE = [
    "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254",
    "100.64.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192", "198.18.0.1",
    "240.0.0.1", "224.0.0.1", "255.255.255.255", "192.88.99.1", "0.0.0.0", "0", "10.1",
    "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "0xA.0.0.1", "012.0.0.1",
    "[::]", "[fe80::1]", "[fd00:ec2::254]", "[fec0::1]", "[ff02::1]",
    "[::ffff:10.0.0.1]", "[::ffff:a9fe:a9fe]", "[::a9fe:a9fe]", "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::1]", "[2002:a9fe:a9fe::1]", "[2001::1]", "[5f00::1]", "[2001:db8::1]",
    "①⓪.⓪.⓪.①", "１０.0.0.1", "10。0。0。1", "169.254.169.254:8080",
]  # fmt: skip
THIS_MACHINE = [
    "127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::1]", "localhost",
    "LOCALHOST", "ⓛocalhost", "①②⑦.⓪.⓪.①",
]  # fmt: skip
MALFORMED = [
    "", "x", "//10.0.0.1/", "ftp://agent.example/", "didcomm:transport/queue",
    "ws://agent.example", "file:///etc/passwd", "gopher://127.0.0.1:6379/", "http://",
    "http:///x", "http://[", "http://[]/", "http://[fe80::1%25eth0]/",
    "http://agent.example:0/", "http://agent.example:22/",
    "http://agent.example:99999/", "http://agent.example:x/",
    "http://user@agent.example/", "http://public.example@10.0.0.1/",
    "http://agent.example\\@10.0.0.1/", "http://a b/", "http://agent.example/\r\nX: y",
    "http://agent.example/\t", "http://a%2eexample/", "http://-\u202e/",
    "http://" + "a" * 300, "http://..", "http://a\u0000/", "http://?x=agent.example",
    "http://:80/",
]  # fmt: skip

NOT_CALLED = ("address_refused", "endpoint_unreachable")


@pytest.fixture(autouse=True)
def nothing_is_connected_to(monkeypatch):
    def connect(*arguments):
        raise AssertionError("connected")

    monkeypatch.setattr("socket.socket.connect", connect)


@pytest.fixture
def resolves(monkeypatch):
    """Make names resolve to these lists of addresses, one after the other.

    Return the names looked up.
    """

    def resolve(*answers):
        asked, left = [], list(answers)

        def look_up(host, port, flags=0):
            if flags:
                raise socket.gaierror
            asked.append(host)
            v6, v4 = socket.AF_INET6, socket.AF_INET
            return [(v6 if ":" in one else v4, (one, port)) for one in left.pop(0)]

        monkeypatch.setattr(addresses, "look_up", look_up)
        return asked

    return resolve


@pytest.fixture
def places(monkeypatch):
    """The places that are connected to, in vain."""
    places = []

    def connect(self, place):
        places.append(place[0])
        raise ConnectionRefusedError

    monkeypatch.setattr("socket.socket.connect", connect)
    return places


def code_of_failed_post(url):
    with pytest.raises(http.CallFailed) as raised:
        http.post(url, b"", "text/plain")
    return raised.value.code


@pytest.mark.parametrize("loopback", [True, False])
def test_an_address_inside_is_refused(loopback, settings, subtests):
    settings.OUTGOING_ALLOW_LOOPBACK = loopback
    for host in INSIDE:
        with subtests.test(host):
            assert code_of_failed_post(f"http://{host}/") == "address_refused"


@pytest.mark.parametrize("host", THIS_MACHINE)
def test_this_machine_is_called_only_where_the_setting_says_so(host, settings, places):
    url = f"http://{host}:8080/"
    assert (code_of_failed_post(url), places) == ("address_refused", [])
    settings.OUTGOING_ALLOW_LOOPBACK = True
    assert code_of_failed_post(url) == "endpoint_unreachable"
    assert places[0] in ("127.0.0.1", "::1")


def test_a_dot_at_the_end_opens_nothing():
    for host in ("127.0.0.1.", "localhost.", "10.0.0.1."):
        assert code_of_failed_post(f"http://{host}/") in NOT_CALLED


def test_what_is_no_web_address_is_refused(resolves, subtests):
    for url in MALFORMED:
        resolves(["93.184.216.34"])
        with subtests.test(url):
            assert code_of_failed_post(url) in NOT_CALLED


def test_a_public_address_is_called(places, resolves):
    public = ["93.184.216.34", "2606:2800:21f:cb07:6820:80da:af6b:8b2c"]
    for address in public:
        resolves([address])
        assert code_of_failed_post("http://agent.example/") == "endpoint_unreachable"
    assert places == public


def test_the_checked_address_is_connected_to_without_another_lookup(places, resolves):
    asked = resolves(["93.184.216.34"], ["169.254.169.254"])
    code_of_failed_post("http://rebinding.example/")
    assert (places, asked) == (["93.184.216.34"], ["rebinding.example"])
    assert code_of_failed_post("http://rebinding.example/") == "address_refused"
    assert places == ["93.184.216.34"]


@pytest.mark.parametrize("at", [0, 1])
def test_one_address_inside_is_enough_to_refuse(at, resolves):
    for inside in ("10.0.0.1", "127.0.0.1", "::1", "fd00::1", "::ffff:127.0.0.1"):
        found = ["93.184.216.34", "93.184.216.35"]
        found.insert(at, inside)
        resolves(found)
        assert code_of_failed_post("http://mixed.example/") == "address_refused"


def test_the_next_address_is_tried_when_one_does_not_answer(places, resolves):
    resolves(["2606:2800::1", "93.184.216.34"])
    assert code_of_failed_post("http://two.example/") == "endpoint_unreachable"
    assert places == ["2606:2800::1", "93.184.216.34"]


def test_a_network_that_is_allowed_is_called(settings, places):
    allowed = [ip_network("10.1.0.0/16"), ip_network("fd00::/64")]
    settings.OUTGOING_ALLOWED_NETWORKS = allowed
    for host in ("10.1.2.3", "[fd00::1]"):
        assert code_of_failed_post(f"http://{host}/") == "endpoint_unreachable"
    for host in ("10.2.0.1", "[fd00:0:0:1::1]", "127.0.0.1", "169.254.169.254"):
        assert code_of_failed_post(f"http://{host}/") == "address_refused"
    assert places == ["10.1.2.3", "fd00::1"]


def test_a_name_outside_ascii_is_looked_up_as_the_name_system_has_it(resolves):
    asked = resolves(["10.0.0.1"])
    code_of_failed_post("http://Bücher.example/")
    assert asked == ["xn--bcher-kva.example"]


def test_at_registration_an_address_inside_is_400(resolves):
    resolves(["10.0.0.1"], ["127.0.0.1"], ["::1"], ["10.1.0.1"])
    for host in ("10.0.0.1", "localhost", "[::1]", "intranet.example"):
        with pytest.raises(Invalid) as refused:
            addresses.check_url(f"http://{host}/", "url")
        assert refused.value.code == "address_refused"
        assert refused.value.errors == {"url": [refused.value.message]}


def test_at_registration_an_unknown_name_passes():
    addresses.check_url("http://not-yet.example/", "url")


def test_at_registration_a_lookup_that_hangs_passes_in_time(monkeypatch):
    over = Event()

    def look_up(host, port, flags=0):
        if flags:
            raise socket.gaierror
        over.wait(20)

    monkeypatch.setattr(addresses, "look_up", look_up)
    monkeypatch.setattr(addresses, "REGISTRATION_LOOKUP_SECONDS", 0.1)
    addresses.check_url("http://slow.example/", "url")
    over.set()
