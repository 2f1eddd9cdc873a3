"""Envelopes from other agents: messages and SQL queries, by number of connections.

Each line is compared to opening the same envelopes with libsodium alone, measured at
the same time. All connections belong to one wallet, and each message is of another
one.
"""

import hashlib
import json
import random
import time

from django.db import connection as database
from django.test import Client

from connections import tasks
from connections.didcomm import dids, envelope, message
from connections.models import Connection, InboundMessage
from connections.protocols import (
    basic_message,
    connections_1_0,
    handshakes,
    trust_ping,
)
from tenants import vault
from tenants.lifecycle.provisioning import create_organization
from wallets import keys
from wallets.models import Key, Wallet

SIZES = (1_000, 10_000, 100_000)
BATCH, MESSAGES, ROUNDS = 5_000, 40, 5
QUIET = {"response_requested": False}
ANSWERED = {"~transport": {"return_route": "all"}}


def run():
    wallet = Wallet.objects.get(tenant=create_organization("Bench").tenant)
    invited = handshakes.invite(wallet, multi_party=True)
    filled = 0
    for size in SIZES:
        fill(wallet, filled, size)
        filled = size
        for name, measure in KINDS.items():
            report(size, name, measure, invited)


def fill(wallet, start, end):
    """Connections number `start` to `end`, each with keys of its own on both sides."""
    for first in range(start, end, BATCH):
        numbers = range(first, min(first + BATCH, end))
        mine = [sealed_key(wallet, seed("mine", number)) for number in numbers]
        Key.objects.bulk_create(mine)
        Connection.objects.bulk_create(
            connected(wallet, key, keys.verkey_of(seed("theirs", number)))
            for key, number in zip(mine, numbers, strict=True)
        )
    with database.cursor() as cursor:
        cursor.execute("ANALYZE")


def seed(side, number):
    return hashlib.sha256(f"{side} {number}".encode()).digest()


def sealed_key(wallet, own_seed):
    key = Key(
        tenant_id=wallet.tenant_id, wallet=wallet, verkey=keys.verkey_of(own_seed)
    )
    vault.seal(key, "seed", keys.encode_key(own_seed))
    return key


def connected(wallet, key, their_key):
    row = Connection(
        tenant=wallet.tenant, wallet=wallet, role="inviter", state="Connected"
    )
    row.connection_id, row.my_key, row.their_key = str(row.pk), key, their_key
    return row


def envelopes(size, kind, **members):
    """Of random connections: `(data, our seed)`."""
    for number in random.sample(range(size), MESSAGES):
        body = message.build(kind, **members)
        yield (
            packed(body, seed("theirs", number), keys.verkey_of(seed("mine", number))),
            (seed("mine", number)),
        )


def packed(body, sender_seed, recipient):
    sender = envelope.Sender(keys.verkey_of(sender_seed), sender_seed)
    return envelope.pack(json.dumps(body).encode(), [recipient], sender)


def report(size, name, measure, invited):
    rounds = [measure(size, invited) for _ in range(ROUNDS)]
    seconds, alone, queries = (
        sorted(column)[ROUNDS // 2] for column in zip(*rounds, strict=True)
    )
    print(
        f"{size:7} connections  {name:24} {MESSAGES / seconds:7.0f} per second  "
        f"{seconds / alone:6.1f} x opening alone  {queries / MESSAGES:5.1f} queries"
    )


def stored(size, invited):
    """Posted and stored; the worker has still to process it."""
    measured = posted(list(envelopes(size, trust_ping.PING, **QUIET)), 202)
    InboundMessage.objects.filter(status="pending").delete()
    return measured


def processed(size, invited):
    """What the worker then does with a ping that wants no answer."""
    return worked(list(envelopes(size, trust_ping.PING, **QUIET)))


def noted(size, invited):
    """The same with a text, which is stored and announced."""
    return worked(list(envelopes(size, basic_message.MESSAGE, content="Hello")))


def answered(size, invited):
    """A ping, its reply in the answer of the call."""
    return posted(list(envelopes(size, trust_ping.PING, **ANSWERED)), 200)


def requested(size, invited):
    """A request for a multi-use invitation, with the reply in the response."""
    key = invited.invitation_key
    data = [
        (packed(request(own_seed) | ANSWERED, own_seed, key.verkey), key.unseal_seed())
        for own_seed in (random.randbytes(32) for _ in range(MESSAGES))
    ]
    return posted(data, 200)


def request(own_seed):
    verkey = keys.verkey_of(own_seed)
    party = dids.Party(keys.did_of(verkey), verkey, "", [])
    return connections_1_0.build_request("Phone", "", party, message.PREFIX)


KINDS = {
    "stored": stored,
    "processed: ping": processed,
    "processed: text": noted,
    "answered in the call": answered,
    "connected in the call": requested,
}


def posted(data, status):
    client = Client()

    def post():
        for one, _ in data:
            answer = client.post(
                "/didcomm", data=one, content_type="application/ssi-agent-wire"
            )
            if answer.status_code != status:
                raise RuntimeError(f"{answer.status_code} {answer.content}")

    return timed(post, data)


def worked(data):
    posted(data, 202)
    return timed(tasks.sweep, data)


def timed(work, data):
    """Seconds for all messages, seconds to open their envelopes alone, SQL queries."""
    queries = Counter()
    with database.execute_wrapper(queries):
        started = time.perf_counter()
        work()
        seconds = time.perf_counter() - started
    started = time.perf_counter()
    for one, own_seed in data:
        envelope.unpack(one, lambda kids, own_seed=own_seed: (kids[0], own_seed))
    return seconds, time.perf_counter() - started, queries.number


class Counter:
    number = 0

    def __call__(self, execute, *arguments):
        self.number += 1
        return execute(*arguments)
