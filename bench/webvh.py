"""The network `webvh` beside the local one, and its documents beside short links.

Issuing and verifying: four clients of an organization on each network repeat both over
a connection of their own, without and with revocation. Reading: 16 clients get a log, a
status list and a registry with LINKS links, and a short link as software reads it. All
that is compared is measured in turns, in another order in each second round. A ratio is
of one round; one below 0.95 is marked with `!`. A read that takes another statement
than one SELECT ends the bench.

ROUNDS, SECONDS: see bench/rounds.py. LINKS: by default 250, about as many as a full registry has.
"""

import os
import statistics

from django.db import connection, transaction
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext

from bench import load
from bench.cycle import client_parameters, print_conditions
from bench.product import WORKERS, running
from bench.rounds import ROUNDS, SECONDS, format_spread, format_values
from bench.story import POLICY, VALUES, Caller
from connections.models import Connection
from credentials.ledgers import ledger_of
from credentials.models import RevocationRegistry, StatusList, WebvhDid
from tenants.lifecycle.provisioning import LOCAL, WEBVH
from wallets import key_generator

HOST = "bench.example.org"
PUBLIC_URL = f"https://{HOST}"
LINKS = int(os.environ.get("LINKS", "250"))
CLIENTS, READERS = 4, 16
SECONDS_OF_READS = min(SECONDS, 5)
LOWEST = 0.95  # of the ratios that are not marked
SHORT_LINK = "short link"
VALID_NOW = POLICY | {"revocationRequirement": {"validNow": True}}


def run():
    with (
        running(*WORKERS, PUBLIC_URL=PUBLIC_URL) as url,
        override_settings(PUBLIC_URL=PUBLIC_URL),
    ):
        print_conditions()
        for policy in (POLICY, VALID_NOW):
            is_revocable = policy is VALID_NOW
            issuers = {one: issuer(url, one, is_revocable) for one in (LOCAL, WEBVH)}
            measured = {
                network: exchanges_of(first, policy)
                for network, first in issuers.items()
            }
            title = "issued and verified per second"
            rates = in_turns("exchange", measured, SECONDS)
            show(f"{title}, revocable" if is_revocable else title, LOCAL, rates)
        rates = in_turns("read", reads_of(issuers[WEBVH]), SECONDS_OF_READS)
        show(f"GET per second, {READERS} clients", SHORT_LINK, rates)


def issuer(url, network, is_revocable):
    """A new organization on a network, with a definition and a connected wallet."""
    caller = Caller(url, network)
    key_generator.make_key()
    return caller.prepare(caller.defines(*VALUES, supportRevocation=is_revocable))


def exchanges_of(first, policy):
    """The clients that issue and verify, each with a wallet of its own."""
    callers = [first, *(Caller.like(first) for _ in range(CLIENTS - 1))]
    return [client_parameters(one, policy) for one in callers]


def reads_of(caller):
    """The clients that read each document, and a short link."""
    registries = RevocationRegistry.objects.filter(
        definition__definition_id=caller.definition
    )
    registry = registries.latest("created_at")
    did = WebvhDid.objects.get(did=registry.registry_id.partition("/")[0])
    publish_lists(registry)
    newest = did.resources.filter(unique_name__startswith="list ").latest("pk")
    base = f"/issuers/{did.segment}"
    digest = registry.registry_id.rpartition("/")[2]
    opened = caller.invites(multiParty=True)
    token = Connection.objects.get(connection_id=opened["connectionId"]).token
    paths = {
        SHORT_LINK: f"/i/{token}",
        "log": f"{base}/did.jsonl",
        "status list": f"{base}/resources/{newest.digest}",
        f"registry with {LINKS} links": f"{base}/resources/{digest}",
    }
    for name in paths.keys() - {SHORT_LINK}:
        require_one_select(paths[name])
    headers = {"Host": HOST, "Accept": "application/json"}
    return {
        name: [{"url": caller.url, "headers": headers, "path": path}] * READERS
        for name, path in paths.items()
    }


def publish_lists(registry):
    """Publish lists until the registry links LINKS of them."""
    network = registry.tenant.network
    lists = StatusList.objects.filter(registry_id=registry.registry_id)
    newest = StatusList.newest(network, registry.registry_id)
    for number in range(1, LINKS - lists.count() + 1):
        later = newest | {"timestamp": newest["timestamp"] + number}
        with transaction.atomic():
            ledger_of(network).publish_status_list(later)


def require_one_select(path):
    client = Client(SERVER_NAME=HOST)
    client.get(path)  # the first read of a log is noted in the storage
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(path)
    executed = [query["sql"] for query in captured]
    if answer.status_code != 200 or [sql[:6] for sql in executed] != ["SELECT"]:
        raise RuntimeError(f"{path}: {answer.status_code} {executed}")


def in_turns(story, measured, seconds):
    """Return the stories per second of each round, by what is measured."""
    rates = {name: [] for name in measured}
    for number in range(ROUNDS):
        for name in sorted(measured, reverse=number % 2):
            found = load.measure_load(story, measured[name], seconds, {})
            rates[name].append(found.rate)
    return rates


def show(title, base, rates):
    """Print the rates, and their ratios to those of `base` in the same round."""
    width = max(map(len, [title, *rates]))
    print(f"\n{title:{width}} {'median (lowest–highest)':>26} {f'by {base}':>22}")
    for name, found in rates.items():
        ratios = [one / other for one, other in zip(found, rates[base], strict=True)]
        mark = " !" if statistics.median(ratios) < LOWEST else ""
        shown = "" if name == base else format_spread(ratios, ".2f") + mark
        print(f"{name:{width}} {format_values(found):>26} {shown:>22}", flush=True)
