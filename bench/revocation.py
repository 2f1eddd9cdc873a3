"""Definitions, credentials and revocations over HTTP, compared to the library alone.

Each figure and what it is compared with are measured in turns. A key costs 1 to 15 s
by chance. Each round issues and revokes with a definition of its own, whose first
registry has 64 places. ROUNDS: see bench/rounds.py.
"""

import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from bench.product import running
from bench.rounds import AGENCY, BARE, ROUNDS, Table
from bench.story import VALUES, Caller
from credentials.ledgers import ledger_of
from credentials.models import CredentialDefinition, RevocationRegistry, StatusList
from credentials.registries import build_registry
from tenants import vault
from wallets import anoncreds, key_generator
from wallets.anoncreds.generator import generate

# In a round: credentials that are issued, revocations of each kind, clients at a time.
ISSUED, ALONE, AT_ONCE = 20, 5, 8
SIZES = (250, 1000, 4000)  # places of a registry
REVOCABLE = "revocable definition with a spare key, ms"
REVOKE_ALONE = "one revocation, a second after the last list, ms"
# What precedes each revocation, by the name of a row.
BEFORE = {
    REVOKE_ALONE: lambda row: time.sleep(1.1),
    "one revocation, right after another, ms": lambda row: None,
    "one revocation, after its second's list was given, ms": lambda row: newest_list(
        row
    ).final_body(),
}


def run():
    table = Table()
    with running() as url:
        caller = Caller(url).prepare()
        for _ in range(ROUNDS):
            row = define_both(table, caller)
            caller.pair.definition = row.definition_id
            issue(table, caller, row)
            revoke(table, caller, row)
            build(table, row)
    table.show()
    return table


def public_part(row):
    return ledger_of(row.tenant.network).definition(row.definition_id)


def form(is_revocable):
    name = f"bench {time.perf_counter_ns()}"
    body = {"name": name, "version": "1.0", "attributes": list(VALUES)}
    return body | {"supportRevocation": is_revocable}


def seconds(function, *given, **named):
    started = time.perf_counter()
    function(*given, **named)
    return time.perf_counter() - started


def define_both(table, caller):
    """The library's key alone, and a definition with a spare key, in turns.

    Returns the row of the revocable one.
    """
    for name, is_revocable in (
        ("definition with a spare key, ms", False),
        (REVOCABLE, True),
    ):
        table.add(name, BARE, 1000 * seconds(make_bare_key, is_revocable))
        key_generator.make_key()
        body = form(is_revocable)
        spent = seconds(caller.post, "/definitions/credentials", body)
        table.add(name, AGENCY, 1000 * spent)
    return CredentialDefinition.objects.get(schema__name=body["name"])


def make_bare_key(is_revocable):
    issuer = "1" * 22
    schema = {"issuerId": issuer, "name": "bare", "version": "1"}
    schema["attrNames"] = list(VALUES)
    schema_id = f"{issuer}:2:bare:1"
    generate(schema_id, schema, issuer, "bare", is_revocable)


def issue(table, caller, row):
    """Offer and issue a revocable credential, compared to the four library calls."""
    bare = bare_issue(row)
    ours, alone = [], []
    for _ in range(ISSUED):
        ours.append(seconds(caller.issue))
        alone.append(seconds(bare))
    name = "issue a revocable credential, ms"
    table.add(name, BARE, 1000 * statistics.median(alone))
    table.add(name, AGENCY, 1000 * statistics.median(ours))


def bare_issue(row):
    registry = RevocationRegistry.objects.filter(definition=row).latest("created_at")
    public, registry_public = public_part(row), registry.public_part
    private, proof = vault.unseal(row, "private_key"), vault.unseal(row, "key_proof")
    newest = StatusList.newest(row.tenant.network, registry.registry_id)
    secret = anoncreds.create_link_secret()
    place = anoncreds.RevocationSlot(
        registry_public,
        vault.unseal(registry, "private_key"),
        newest,
        registry.size - 1,
    )

    def once():
        offer = anoncreds.create_offer(row.schema.schema_id, row.definition_id, proof)
        asked, metadata = anoncreds.create_request(
            offer, public, secret, public["issuerId"]
        )
        signed = anoncreds.create_credential(
            public, private, offer, asked, VALUES, place
        )
        anoncreds.process_credential(signed, metadata, secret, public, registry_public)

    return once


def revoke(table, caller, row):
    """Those of one second share a list, unless somebody was given it meanwhile."""
    issued = [caller.issue() for _ in range(len(BEFORE) * ALONE + 3 * AT_ONCE)]
    bare = 1000 * statistics.median(bare_lists(row))
    for name, prepare in BEFORE.items():
        alone = []
        for _ in range(ALONE):
            prepare(row)
            path = f"/credentials/{issued.pop()}"
            alone.append(seconds(caller.delete, path))
        table.add(name, BARE, bare)
        table.add(name, AGENCY, 1000 * statistics.median(alone))
    paths = [f"/credentials/{one}" for one in issued]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        started = time.perf_counter()
        list(threads.map(caller.delete, paths))
        rate = len(paths) / (time.perf_counter() - started)
    table.add(f"revocations per second, {AT_ONCE} clients", AGENCY, rate)


def newest_list(row):
    registries = RevocationRegistry.objects.filter(definition=row)
    lists = StatusList.objects.filter(registry_id__in=registries.values("registry_id"))
    return lists.latest("timestamp", "updated_at")


def bare_lists(row):
    registry = RevocationRegistry.objects.filter(definition=row).earliest("created_at")
    public, definition = registry.public_part, public_part(row)
    private = vault.unseal(registry, "private_key")
    newest = StatusList.newest(row.tenant.network, registry.registry_id)
    free = [place for place, gone in enumerate(newest["revocationList"]) if not gone][
        1:6
    ]
    for number, place in enumerate(free):
        given = (
            definition,
            public,
            private,
            newest,
            [place],
            newest["timestamp"] + number + 1,
        )
        yield seconds(anoncreds.update_status_list, *given)


def build(table, row):
    """A registry with row, list and tails file, compared to the library's call."""
    public = public_part(row)
    for size in SIZES:
        ours = seconds(build_registry, row, public, size) * 1000
        with tempfile.TemporaryDirectory() as folder:
            given = (
                row.definition_id,
                public,
                public["issuerId"],
                "bare",
                size,
                folder,
            )
            bare = seconds(anoncreds.create_registry, *given) * 1000
        table.add(f"registry of {size} places, ms", BARE, bare)
        table.add(f"registry of {size} places, ms", AGENCY, ours)
