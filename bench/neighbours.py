"""What a neighbour feels of each attack: its 99th percentile before, during and after.

The product runs as the Procfile starts it, with its default limits. Attackers without
keys have addresses of their own (127.0.0.2 and so on); one with keys is an
organization of its own. Each attack goes on while the neighbour is measured, in ROUNDS
rounds (3). ATTACKS: the names of those to measure, all by default.
"""

import itertools
import json
import multiprocessing
import os
import random
import re
import socket
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from http.client import HTTPConnection
from typing import NamedTuple
from urllib.parse import urlsplit

import requests
from django.conf import settings
from django.contrib.auth.hashers import make_password

from agency.holders.wallet import links
from agency.holders.wallet.models import PersonalLink
from bench.inbound import connected, packed, request, sealed_key, seed
from bench.product import running
from bench.story import POLICY, Caller
from connections.didcomm import message
from connections.models import Connection
from connections.protocols import trust_ping
from tenants import audit
from tests.support.http_servers import http_server
from tests.support.people import ApiError
from wallets import key_generator, keys
from wallets.models import Wallet
from webhooks.models import Webhook

SAMPLES, PAUSE = 200, 0.02
PIN = "284615"
ROUNDS = int(os.environ.get("ROUNDS", "3"))
INBOX = {  # the defaults
    "INBOX_PER_ADDRESS": "6000",
    "INBOX_PER_RECIPIENT": "1200",
    "REQUESTS_PER_INVITATION": "60",
}
PREDICATES = [
    {
        "policyName": f"over {number}",
        "attributeName": "age",
        "predicateType": ">=",
        "predicateValue": number,
        "allowText": True,
    }
    for number in range(25)
]
HEAVY = POLICY | {"predicates": PREDICATES}
numbers = itertools.count()
# The attackers' functions cannot be pickled.
FORK = multiprocessing.get_context("fork")


def run():
    settings.OUTGOING_ALLOW_LOOPBACK = True
    with running("worker", "deliver", **INBOX) as url, listening() as places:
        world = World(url, places)
        world.reads()
        for attack, neighbour in ATTACKS:
            if attack.__name__ in (os.environ.get("ATTACKS") or attack.__name__):
                rounds = [
                    measure_attack(world, attack, neighbour) for _ in range(ROUNDS)
                ]
                name = f"{attack.__name__.replace('_', ' ')}: {neighbour.__name__}"
                print(f"{name:32} {describe_rounds(rounds)}", flush=True)


class Round(NamedTuple):
    """The 99th percentiles of one round, in milliseconds."""

    before: float
    during: float
    after: float


def measure_attack(world, attack, neighbour):
    before = late(neighbour(world))
    with attack(world):
        time.sleep(3)
        during = late(neighbour(world))
    time.sleep(10)
    return Round(before, during, late(neighbour(world)))


def describe_rounds(rounds):
    """The medians, and the median and range of during / before."""
    before, during, after = map(statistics.median, zip(*rounds, strict=True))
    ratios = sorted(found.during / found.before for found in rounds)
    return (
        f"before {before:7.1f} ms   during {during:7.1f} ms   after {after:7.1f} ms   "
        f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f}–{ratios[-1]:.2f})"
    )


def late(milliseconds):
    return statistics.quantiles(milliseconds, n=100)[98]


class Places:
    """A server for calls of the product.

    Calls to the neighbour's paths set `arrived`.
    """

    def __init__(self, url):
        self.url, self.arrived = url, threading.Event()


@contextmanager
def listening():
    """An HTTP server: /slow/ answers 200 after 13 seconds, /stuck/ after a minute."""

    def respond(call):
        call.read()
        if call.path.startswith("/mine"):
            places.arrived.set()
        else:
            time.sleep(13 if call.path.startswith("/slow") else 60)
        call.answer()

    with http_server(respond) as server:
        places = Places(server.url)
        yield places


class World:
    """The neighbour with an outside peer and a webhook, and an attacker."""

    def __init__(self, url, places):
        self.url, self.places = url, places
        self.neighbour, self.attacker = Caller(url).prepare(), Caller(url).prepare()
        self.peer = self.connect(self.neighbour, places.url + "/mine/peer")
        self.register(self.neighbour, places.url + "/mine/hook")
        # Each link takes thirty PINs a minute.
        holders = [Browser(url, "127.0.0.1") for _ in range(40)]
        for holder in holders:
            holder.open(link_of(self.neighbour))
        self.holders = itertools.cycle(holders)

    def connect(self, caller, endpoint):
        """A connection of the organization with an agent that has answered before."""
        wallet = Wallet.objects.get(tenant=caller.tenant, is_organization=True)
        number = next(numbers)
        key = sealed_key(wallet, seed("mine", number))
        key.save(force_insert=True)
        row = connected(wallet, key, keys.verkey_of(seed("theirs", number)))
        row.their_endpoint = row.answering_endpoint = endpoint
        row.save(force_insert=True)
        self.sender, self.recipient = seed("theirs", number), key.verkey
        return row.connection_id

    def register(self, caller, url):
        kind, dialect = Webhook.Type.ZAPIER, Webhook.Dialect.CLIENT
        types = ["connection_invited"]
        return Webhook.register(caller.tenant, url, kind, dialect, message_types=types)

    # What the neighbour does; each answers milliseconds.

    def reads(self):
        """A connection over REST."""
        return timed(lambda: self.neighbour.get(f"/connections/{self.peer}"))

    def messages(self):
        """A text, until it arrives at the other agent."""
        text = {"connectionId": self.peer, "text": "Hello"}
        write = partial(self.neighbour.post, "/messages", text)
        return timed(lambda: self.arrives(write))

    def webhooks(self):
        """An event, until it arrives at the webhook."""
        return timed(lambda: self.arrives(self.neighbour.invites))

    def arrivals(self):
        """A message of the other agent, until it is taken."""
        return timed(lambda: self.post(self.ping(), "127.0.0.1", 202))

    def pins(self):
        """The PIN of a wallet, in its holder's browser, until the wallet is open."""
        return timed(lambda: next(self.holders).give(PIN))

    def arrives(self, call):
        self.places.arrived.clear()
        call()
        if not self.places.arrived.wait(120):
            raise RuntimeError("it never arrived")

    def ping(self):
        body = message.build(trust_ping.PING, response_requested=False)
        return packed(body, self.sender, self.recipient)

    def post(self, data, address, status=None):
        """An envelope from this address of ours."""
        parts = urlsplit(self.url)
        client = HTTPConnection(
            parts.hostname, parts.port, 60, source_address=(address, 0)
        )
        try:
            client.request(
                "POST", "/didcomm", data, {"Content-Type": "application/json"}
            )
            answer = client.getresponse()
            answer.read()
            if status and answer.status != status:
                raise RuntimeError(f"{answer.status} instead of {status}")
        finally:
            client.close()

    def open(self, address):
        parts = urlsplit(self.url)
        place = (parts.hostname, parts.port)
        return socket.create_connection(place, timeout=30, source_address=(address, 0))


class Browser:
    """A browser at an address of ours, for the pages of wallets."""

    def __init__(self, url, address):
        self.url, self.session = url, requests.Session()
        self.session.mount("http://", From(address))

    def open(self, path):
        self.session.get(self.url + path)
        page = self.session.get(f"{self.url}/w/pin").text
        self.form = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)[1]

    def post(self, path, **fields):
        fields["csrfmiddlewaretoken"] = self.form
        return self.session.post(self.url + path, fields, allow_redirects=False)

    def give(self, pin, *statuses):
        """Enter a PIN. Others than the statuses, 302 if none are given, are errors."""
        answer = self.post("/w/pin", pin=pin)
        if answer.status_code not in (statuses or (302,)):
            raise RuntimeError(f"{answer.status_code} {answer.text}")

    def forget(self):
        """Be a browser that the link does not know."""
        self.session.cookies.pop("agency_wallet_known", None)


class From(requests.adapters.HTTPAdapter):
    """Connects from an address of ours."""

    def __init__(self, address):
        self.address = address
        super().__init__()

    def init_poolmanager(self, *arguments, **options):
        options["source_address"] = (self.address, 0)
        super().init_poolmanager(*arguments, **options)


def link_of(caller):
    """The path of the personal link of a new wallet, whose PIN was chosen."""
    made = links.create_link(Wallet.create(caller.tenant), by=audit.SYSTEM)
    PersonalLink.objects.filter(pk=made.pk).update(pin=make_password(PIN))
    return f"/w/{made.token}"


def timed(work):
    found = []
    for _ in range(SAMPLES):
        started = time.perf_counter()
        work()
        found.append((time.perf_counter() - started) * 1000)
        time.sleep(PAUSE)
    return found


def strangers(count):
    """Addresses, none of them the neighbour's."""
    return [f"127.0.0.{2 + number}" for number in range(count)]


@contextmanager
def repeated(*works):
    """Each in a thread of its own, again and again.

    In another process, so that the attackers' own work delays nothing of what is
    measured.
    """
    ended = FORK.Event()
    attackers = FORK.Process(target=repeat_all, args=[works, ended], daemon=True)
    attackers.start()
    try:
        yield
    finally:
        ended.set()
        attackers.join(60)


def repeat_all(works, ended):
    def repeat(work):
        while not ended.is_set():
            try:
                work()
            except (RuntimeError, ApiError, OSError):
                time.sleep(0.1)

    with ThreadPoolExecutor(len(works)) as threads:
        list(threads.map(repeat, works))


@contextmanager
def unfinished_bodies(world):
    """Two hundred, on eight addresses; one that the server closes is opened again."""
    head = b"POST /didcomm HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{"

    def hold(address):
        with ExitStack() as held:
            for _ in range(25):
                held.enter_context(world.open(address)).sendall(head)
            time.sleep(5)

    with repeated(*(partial(hold, address) for address in strangers(8))):
        yield


@contextmanager
def slow_readers(world):
    """Two hundred that read nothing of a large answer."""
    with ExitStack() as held:
        for address in strangers(200):
            reader = held.enter_context(world.open(address))
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        yield


@contextmanager
def tarpits(world):
    """A hundred strangers answer a multi-party invitation, and their endpoints hang."""
    made = world.attacker.invites(multiParty=True)
    invited = Connection.objects.get(connection_id=made["connectionId"])
    recipient = invited.invitation["recipientKeys"][0]
    for number in range(100):
        own_seed = random.randbytes(32)
        body = request(own_seed)
        document = body["connection"]["DIDDoc"]
        document["service"][0]["serviceEndpoint"] = f"{world.places.url}/stuck/{number}"
        # Two addresses: one gets 60 requests by an invitation in a minute.
        world.post(packed(body, own_seed, recipient), strangers(2)[number % 2])
    yield


@contextmanager
def slow_webhooks(world):
    """Forty webhooks of the attacker take 13 s per call, with an event every second."""
    known = Webhook.objects.filter(tenant=world.attacker.tenant)
    for number in range(known.count(), 40):  # those of a former round are there
        world.register(world.attacker, f"{world.places.url}/slow/{number}")

    def happen():
        world.attacker.invites()
        time.sleep(1)

    with repeated(happen):
        yield


@contextmanager
def rubbish(world):
    """Invalid envelopes for the neighbour's key, up to two hundred per second."""
    broken = json.loads(world.ping())
    broken["tag"] = "AAAAAAAAAAAAAAAAAAAAAA=="
    data = json.dumps(broken).encode()

    def send(address):
        world.post(data, address)
        time.sleep(0.02)

    with repeated(*(partial(send, address) for address in strangers(4))):
        yield


@contextmanager
def many_predicates(world):
    """An organization has eight proofs of 25 predicates made and judged at a time."""
    others = [Caller.like(world.attacker) for _ in range(8)]
    for other in others:
        other.issue()
    with repeated(*(partial(prove, other) for other in others)):
        yield


def prove(caller):
    caller.post(f"/verifications/policy/connections/{caller.connection}", HEAVY)
    path = f"{caller.wallet}/verifications"
    [asked] = caller.get(f"{path}?state=Requested&limit=1")
    caller.put(f"{path}/{asked['verificationId']}/autoSelect")


@contextmanager
def large_definitions(world):
    """An organization asks for definitions of 125 attributes, ten at a time.

    For the first ten there are spare keys.
    """
    for _ in range(10):
        key_generator.make_key()

    def define():
        world.attacker.defines(*(f"a{number}" for number in range(125)))

    with repeated(*[define] * 10):
        yield


@contextmanager
def invitations(world):
    """Strangers on four addresses ask to connect by an invitation for many."""
    made = world.neighbour.invites(multiParty=True)
    invited = Connection.objects.get(connection_id=made["connectionId"])
    with asked(world, invited.invitation["recipientKeys"][0]):
        yield


@contextmanager
def public_did(world):
    """Strangers on four addresses ask to connect by the public DID."""
    world.neighbour.post("/tenants/publicDid")
    world.neighbour.put("/tenants/publicDid", {"acceptsRequests": True})
    own = Wallet.of_organization(world.neighbour.tenant)
    with asked(world, own.public_key.verkey):
        yield


@contextmanager
def asked(world, recipient):
    """Each request of another agent, as fast as they are taken or refused."""

    def ask(address):
        own_seed = random.randbytes(32)
        world.post(packed(request(own_seed), own_seed, recipient), address)

    with repeated(*(partial(ask, address) for address in strangers(4))):
        yield


@contextmanager
def guessed_pins(world):
    """Somebody opens twenty wallets again and again, and guesses their PINs.

    In eight browsers that the links do not know, at one address.
    """
    paths = [link_of(world.attacker) for _ in range(20)]
    turns = itertools.cycle(paths)

    def guess(browser):
        browser.open(next(turns))
        for pin in (PIN, PIN, "715204"):
            browser.forget()
            browser.give(pin, 302, 403, 429)

    browsers = [Browser(world.url, strangers(1)[0]) for _ in range(8)]
    with repeated(*(partial(guess, browser) for browser in browsers)):
        yield


@contextmanager
def visitors(world):
    """Eight visitors at a time make wallets by a link for many, and choose their PINs."""
    tenant = world.attacker.tenant
    tenant.visitor_wallets, tenant.visitor_wallets_a_day = True, 100_000
    tenant.save()
    made = world.attacker.invites(multiParty=True)
    token = Connection.objects.get(connection_id=made["connectionId"]).token
    path = link_of(world.attacker)

    def visit(address):
        browser = Browser(world.url, address)
        browser.open(path)  # for a form
        browser.session.cookies.pop("agency_wallet_link")
        browser.post(f"/w/new/{token}")
        browser.give(PIN, 302, 429)

    with repeated(*(partial(visit, address) for address in strangers(8))):
        yield


ATTACKS = (
    (unfinished_bodies, World.reads),
    (slow_readers, World.reads),
    (tarpits, World.messages),
    (slow_webhooks, World.webhooks),
    (rubbish, World.arrivals),
    (many_predicates, World.reads),
    (large_definitions, World.reads),
    (invitations, World.arrivals),
    (public_did, World.arrivals),
    (guessed_pins, World.reads),
    (guessed_pins, World.pins),
    (visitors, World.reads),
)
