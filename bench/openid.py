"""Wallets of OpenID4VC: what their calls cost, whole cycles, and revoking one of many.

Each figure of a call is the CPU of web, PostgreSQL and broker, in turns with `offer`, the
offer of AnonCreds over a connection. A cycle is offer, token, nonce, credential, ask,
request and response, with a wallet in this process; beside it runs that of AnonCreds, by
as many clients.

ROUNDS, SECONDS: see bench/rounds.py. CALLS (200): of each kind in a round, 25 in turn.
HELD (100000): revocable credentials that are issued when one is revoked.
"""

import json
import os
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import IPv4Address
from random import randrange
from uuid import uuid4

import requests
from django.conf import settings
from uuid_utils.compat import uuid7

from bench.calls import VALUES as OF_CYCLE
from bench.load import cpu_seconds
from bench.product import process_families, run_services
from bench.rounds import AGENCY, ROUNDS, SECONDS, Table
from bench.story import Caller
from credentials.models import Credential, TokenStatusList
from tests.support.openid_wallet import OpenIdWallet
from wallets.jose import sd_jwt, status_token

CALLS = int(os.environ.get("CALLS", "200"))
IN_TURN = 25
HELD = int(os.environ.get("HELD", "100000"))
CLIENTS = 4
VALUES = {"name": "Alice", "degree": "Maths", "level": "7"}
REVOKED = 5  # one by one
AT_ONCE = 5000  # rows


class Http:
    """In place of the test client of OpenIdWallet: calls of the product.

    Each has an address of its own, as those of one are limited.
    """

    def __init__(self):
        self.session = requests.Session()
        address = IPv4Address(randrange(2**24) + int(IPv4Address("10.0.0.0")))
        self.session.headers["X-Forwarded-For"] = str(address)

    def get(self, path, headers=()):
        return self.session.get(settings.PUBLIC_URL + path, headers=dict(headers))

    def post(self, path, data, content_type, headers=()):
        text = data if isinstance(data, str) else json.dumps(data)
        headers = dict(headers) | {"Content-Type": content_type}
        return self.session.post(settings.PUBLIC_URL + path, data=text, headers=headers)


class Wallet(OpenIdWallet):
    """One cycle: each step is a method, so that a kind of call can be measured alone."""

    def __init__(self, caller, definition):
        super().__init__()
        self.client, self.caller, self.definition = Http(), caller, definition

    def offer_link(self):
        offer = {
            "definitionId": self.definition,
            "credentialValues": VALUES,
            "automaticIssuance": True,
            "protocol": "openid4vci",
        }
        made = self.caller.post("/credentials", offer)
        self.credential_id = made["credentialId"]
        self.link = made["walletLinks"]["openid4vci"]

    def prepare_token(self):
        self.open(self.link)

    def ask_for_token(self):
        self.take_token()

    def take_nonce(self):
        self.fresh = self.nonce()

    def prepare_credential(self):
        self.body = self.request(self.prove(nonce=self.fresh))

    def take_credential(self):
        self.keep(self.ask(self.body))

    def be_asked(self):
        only = [{"credentialDefinitionId": self.definition}]
        item = {"policyName": "name", "restrictions": only}
        policy = {"name": "Bench", "version": "1.0", "attributes": [item]}
        policy["protocol"] = "openid4vp"
        made = self.caller.post("/verifications/policy", policy)
        self.verification_id = made["verificationId"]
        self.request_link = made["walletLinks"]["openid4vp"]

    def take_request(self):
        self.read_request(self.request_link)

    def prepare_response(self):
        answer = {"vp_token": self.vp_token(), "state": self.request_object["state"]}
        self.envelope = self.encrypt(answer)

    def respond(self):
        response = self.send(response=self.envelope)
        assert response.status_code == 200, response.text

    def cycle(self):
        for _, prepare, act in PARTS:
            if prepare:
                prepare(self)
            act(self)
        path = f"/verifications/{self.verification_id}"
        assert self.caller.get(path)["isValid"]


PARTS = (
    ("offer link", None, Wallet.offer_link),
    ("token", Wallet.prepare_token, Wallet.ask_for_token),
    ("nonce", None, Wallet.take_nonce),
    ("credential", Wallet.prepare_credential, Wallet.take_credential),
    ("ask", None, Wallet.be_asked),
    ("request", None, Wallet.take_request),
    ("response", Wallet.prepare_response, Wallet.respond),
)


def run():
    table = Table()
    with run_services("worker", TRUSTED_PROXIES="1") as (url, product):
        settings.PUBLIC_URL = url
        families = process_families(product)
        first = Caller(url).prepare()
        callers = [first, *(Caller.like(first) for _ in range(CLIENTS - 1))]
        definition = define(first)
        Wallet(first, definition).cycle()
        for number in range(ROUNDS):
            measure_calls(table, families, first, definition)
            measure_cycles(table, callers, definition)
            print(f"round {number + 1} of {ROUNDS} is done", flush=True)
        revoke_one_of_many(table, first, definition)
    table.show()
    return table


def define(caller):
    formats = {"formats": ["dc+sd-jwt"], "supportRevocation": True}
    return caller.defines(*VALUES, **formats)["definitionId"]


def cpu_of(families, acts):
    """The CPU seconds of these calls, in all processes of the product."""
    before = cpu_seconds(families)
    for act in acts:
        act()
    after = cpu_seconds(families)
    return sum(after[name] - before[name] for name in after)


def measure_calls(table, families, caller, definition):
    """Each kind of call in turns with all others, a few at a time.

    So what else the machine does meanwhile makes all of them slower.
    """
    offer = {
        "definitionId": caller.definition,
        "connectionId": caller.connection,
        "credentialValues": OF_CYCLE,
        "automaticIssuance": True,
    }
    spent = Counter()
    for _ in range(CALLS // IN_TURN):
        offers = [partial(caller.post, "/credentials", offer)] * IN_TURN
        spent["offer (AnonCreds)"] += cpu_of(families, offers)
        wallets = [Wallet(caller, definition) for _ in range(IN_TURN)]
        for name, prepare, act in PARTS:
            for wallet in wallets:
                if prepare:
                    prepare(wallet)
            spent[name] += cpu_of(families, [partial(act, one) for one in wallets])
    for name, seconds in spent.items():
        of_one = 1000 * seconds / CALLS
        table.add(f"CPU of {name}, ms", AGENCY, of_one)
        if name in ("credential", "response"):
            limit = 1.2 * 1000 * spent["offer (AnonCreds)"] / CALLS + 1
            table.add(f"    {name} / (1.2 × offer + 1 ms)", AGENCY, of_one / limit)


def measure_cycles(table, callers, definition):
    ours = rate_of([lambda one=one: Wallet(one, definition).cycle() for one in callers])
    anoncreds = rate_of([caller.cycle for caller in callers])
    table.add("cycles of OpenID4VC per second", AGENCY, ours)
    table.add("cycles of AnonCreds per second", AGENCY, anoncreds)
    table.add("    ratio", AGENCY, ours / anoncreds)


def rate_of(cycles):
    """Cycles per second, of as many clients as there are functions."""
    end = time.monotonic() + SECONDS

    def repeat(cycle):
        done = 0
        while time.monotonic() < end or not done:
            cycle()
            done += 1
        return done

    started = time.monotonic()
    with ThreadPoolExecutor(len(cycles)) as threads:
        done = sum(threads.map(repeat, cycles))
    return done / (time.monotonic() - started)


def revoke_one_of_many(table, caller, definition):
    wallets = [Wallet(caller, definition) for _ in range(REVOKED)]
    for wallet in wallets:
        wallet.cycle()
    fill(wallets[0].credential_id)
    for wallet in wallets:
        started = time.perf_counter()
        caller.delete(f"/credentials/{wallet.credential_id}")
        spent = time.perf_counter() - started
        table.add(f"revoking one of {HELD}, ms", AGENCY, 1000 * spent)
        assert is_revoked(wallet), "the list served does not say so"


def fill(credential_id):
    """Issued credentials beside one, in places of the lists of their organization."""
    model = Credential.objects.get(pk=credential_id)
    tenant, taken = model.tenant, 0
    base = model.revocation_registry_id.rpartition("/")[0]
    newest = TokenStatusList.objects.filter(tenant=tenant).latest("number").number
    model.connection = None
    while taken < HELD:
        rows = []
        for place in range(taken, min(taken + AT_ONCE, HELD)):
            model.pk, model.thread_id = uuid7(), str(uuid4())
            model.revocation_registry_id = f"{base}/{newest + 1 + place // 65536}"
            model.revocation_index = place % 65536
            rows.append(Credential(**values_of(model)))
        Credential.objects.bulk_create(rows)
        taken += len(rows)


def values_of(model):
    return {
        field.attname: getattr(model, field.attname)
        for field in model._meta.concrete_fields
    }


def is_revoked(wallet):
    listed = sd_jwt.read(wallet.credential).claims["status"]["status_list"]
    text = wallet.read(listed["uri"]).text
    found = status_token.parse_token(text, listed["uri"], time.time())
    return found.status_of(listed["idx"]) == 1
