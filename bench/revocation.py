"""Definitions, credentials and revocations over HTTP, compared to the library alone.

Each figure and what it is compared with are measured in turns. A key costs 1 to 15 s
by chance: the median of a few is shown.
"""

import statistics
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

from bench.product import running
from bench.story import VALUES, Caller
from credentials.ledgers import ledger_of
from credentials.models import CredentialDefinition, RevocationRegistry, StatusList
from credentials.registries import build_registry
from tenants import vault
from wallets import anoncreds, key_pool

KEYS, ISSUED, ALONE, AT_ONCE, SIZES = 5, 20, 5, 8, (250, 1000, 4000)


def run():
    with running("web") as url:
        caller = Caller(url).prepare()
        definitions(caller)
        key_pool.make_key(len(VALUES))
        made = caller.call("post", "/definitions/credentials", json=form(True))
        row = CredentialDefinition.objects.get(definition_id=made["definitionId"])
        caller.pair.definition = row.definition_id
        issue(caller, row)
        revoke(caller, row)
        build(row)


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


def show(what, ours, bare, unit="ms"):
    print(
        f"{what:48} {ours:9.1f} {unit}   beside {bare:9.1f} {unit}   ratio "
        f"{ours / bare:6.3f}"
    )


def definitions(caller):
    """The library's key alone, and a definition with a spare key, in turns."""
    for is_revocable in (False, True):
        rounds = [one_of_each(caller, is_revocable) for _ in range(KEYS)]
        columns = zip(*rounds, strict=True)
        bare, ours = (statistics.median(column) * 1000 for column in columns)
        kind = "revocable definition" if is_revocable else "definition"
        show(f"{kind} with a spare key, and a bare key", ours, bare)


def one_of_each(caller, is_revocable):
    schema = {
        "issuerId": key_pool.SPARE_ISSUER,
        "name": "bare",
        "version": "1",
        "attrNames": list(VALUES),
    }
    given = (
        f"{key_pool.SPARE_ISSUER}:2:bare:1",
        schema,
        key_pool.SPARE_ISSUER,
        "bare",
        is_revocable,
    )
    bare = seconds(anoncreds.create_definition, *given)
    key_pool.make_key(len(VALUES))
    return bare, define(caller, is_revocable)


def define(caller, is_revocable):
    return seconds(
        caller.call, "post", "/definitions/credentials", json=form(is_revocable)
    )


def issue(caller, row):
    """Offer and issue a revocable credential, compared to the four library calls."""
    bare = bare_issue(row)
    ours, alone = [], []
    for _ in range(ISSUED):
        ours.append(seconds(issue_one, caller))
        alone.append(seconds(bare))
    show(
        "issue a revocable credential",
        *(statistics.median(t) * 1000 for t in (ours, alone)),
    )


def issue_one(caller):
    offer = {
        "definitionId": caller.definition,
        "connectionId": caller.connection,
        "credentialValues": VALUES,
        "automaticIssuance": True,
    }
    made = caller.call("post", "/credentials", json=offer)
    listed = caller.call("get", f"{caller.wallet}/credentials?state=Offered")
    caller.call("post", f"{caller.wallet}/credentials/{listed[0]['credentialId']}")
    return made["credentialId"]


def bare_issue(row):
    registry = RevocationRegistry.objects.filter(definition=row).latest("created_at")
    public, registry_public = public_part(row), registry.public_part()
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


def revoke(caller, row):
    """Those of one second share a list, unless somebody was given it meanwhile."""
    issued = [issue_one(caller) for _ in range(3 * ALONE + 3 * AT_ONCE)]
    bare = statistics.median(bare_lists(row)) * 1000
    befores = {
        "a second after the last list": lambda: time.sleep(1.1),
        "right after another": lambda: None,
        "after its second's list was given": lambda: newest_list(row).final_body(),
    }
    for when, before in befores.items():
        alone = []
        for _ in range(ALONE):
            before()
            path = f"/credentials/{issued.pop()}"
            alone.append(seconds(caller.call, "delete", path))
        show(f"revoke one, {when}", statistics.median(alone) * 1000, bare)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        started = time.perf_counter()
        paths = [f"/credentials/{one}" for one in issued]
        list(threads.map(lambda path: caller.call("delete", path), paths))
        rate = len(paths) / (time.perf_counter() - started)
    print(f"{'revoke, eight at a time':48} {rate:9.1f} per second")


def newest_list(row):
    registries = RevocationRegistry.objects.filter(definition=row)
    lists = StatusList.objects.filter(registry_id__in=registries.values("registry_id"))
    return lists.latest("timestamp", "updated_at")


def bare_lists(row):
    registry = RevocationRegistry.objects.filter(definition=row).earliest("created_at")
    public, definition = registry.public_part(), public_part(row)
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


def build(row):
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
        show(f"registry of {size} places", ours, bare)
