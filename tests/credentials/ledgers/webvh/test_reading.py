"""Reading others' did:webvh over https: what is fetched, remembered and refused."""

import json
import time
from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from connections import resolver
from connections.resolver import DidNotResolved
from core.errors import TooOften, Unavailable
from core.work import network_reads, waiting
from credentials.ledgers.reads import LedgerReads
from credentials.ledgers.webvh import encoding, reading
from credentials.ledgers.webvh.read_rows import ReadLog, ReadResource
from credentials.ledgers.webvh.reading import place_of
from credentials.ledgers.webvh.refusals import Refused
from tests.support import webvh
from tests.support.webvh_host import HOST, Host, path_of

VECTORS = webvh.vectors()
DID, LOG, IDS = VECTORS["did"], VECTORS["log"], VECTORS["ids"]
SCID = DID.split(":")[2]
FIRST_LIST, SECOND_LIST = IDS["lists"]
BY_ID = {one["id"]: one for one in VECTORS["resources"]}
TIMES = [link["timestamp"] for link in BY_ID[IDS["registry"]]["links"]]


@pytest.fixture
def host(tmp_path_factory, settings, monkeypatch):
    # Not in the storage, whose files are restored with the organizations.
    host = Host(tmp_path_factory.mktemp("host"), settings, monkeypatch)
    host.shows_vectors()
    yield host
    host.server.stop()


@pytest.fixture
def reads(host, acme):
    return LedgerReads(acme.tenant)


def age(model, **passed):
    """Let what was read have been read earlier."""
    model.objects.update(updated_at=timezone.now() - timedelta(**passed))


def refusal_of(read, *arguments):
    with pytest.raises(Refused) as refused:
        read(*arguments)
    return refused.value.code, refused.value.reason


@pytest.mark.parametrize(
    "did, log_url",
    [
        (f"did:webvh:{SCID}:a.example:b:c", "https://a.example/b/c/did.jsonl"),
        (f"did:webvh:{SCID}:a.example", "https://a.example/.well-known/did.jsonl"),
        (f"did:webvh:{SCID}:a.example%3A8443:b", "https://a.example:8443/b/did.jsonl"),
        (f"did:webvh:{SCID}:a.example%3A8444:b", None),
        (f"did:webvh:{SCID}:a.example:b:..:c", None),
        (f"did:webvh:{SCID}:a.example:b:.", None),
        (f"did:webvh:{SCID}:a.example:", None),
        (f"did:webvh:{SCID}:a.example:b%2Fc", None),
        (f"did:webvh:{SCID}:a.example:b?c", None),
        (f"did:webvh:{SCID}:a.example:b\n", None),
        (f"did:webvh:{SCID}:localhost:b", None),
        (f"did:webvh:{SCID}:127.0.0.1:b", None),
        (f"did:webvh:{SCID}:user@a.example:b", None),
        (f"did:webvh:{SCID[:-1]}:a.example:b", None),
        (f"did:webvh:{SCID}:a.example:{'b' * 300}", None),
        (f"did:web:{SCID}:a.example:b", None),
    ],
)
def test_a_did_leads_to_its_address(settings, did, log_url):
    settings.WEBVH_PORTS = [443, 8443]
    place = place_of(did)
    assert (place and place.log_url) == log_url


def test_objects_are_read_and_checked(host, reads):
    assert reads.schema(IDS["schema"]) == BY_ID[IDS["schema"]]["content"]
    assert reads.definition(IDS["definition"]) == BY_ID[IDS["definition"]]["content"]
    registry = reads.revocation_registry(IDS["registry"])
    assert registry == BY_ID[IDS["registry"]]["content"]
    assert host.asked[path_of(DID)] == 1


@pytest.mark.parametrize(
    "timestamp, expected",
    [
        (TIMES[0] - 1, None),
        (TIMES[0], FIRST_LIST),
        (TIMES[1] - 1, FIRST_LIST),
        (TIMES[1], SECOND_LIST),
        (2**40, SECOND_LIST),
    ],
)
def test_the_newest_list_up_to_a_time_is_read(reads, timestamp, expected):
    content = BY_ID[expected]["content"] if expected else None
    assert reads.status_list(IDS["registry"], timestamp) == content
    assert reads.final_status_list(IDS["registry"], timestamp) == content


def test_who_is_revoked_is_read_from_the_newest_list(reads):
    assert reads.is_revoked(IDS["registry"], 3)
    assert not reads.is_revoked(IDS["registry"], 4)
    assert not reads.is_revoked(IDS["registry"], 4000)


def test_what_does_not_exist_is_none(host, reads):
    missing = f"{DID}/resources/{IDS['schema'][-47:-1]}1"
    assert reads.schema(missing) is None
    for other in (f"{DID}/schemas/1", f"{DID}/resources/../{IDS['schema'][-47:]}", DID):
        assert reads.schema(other) is None
    host.pages.clear()
    age(ReadLog, hours=1)
    assert reads.schema(IDS["schema"]) is None, "its log is gone"


def test_resources_are_remembered_for_ever_and_logs_for_five_minutes(host, reads):
    reads.schema(IDS["schema"])
    age(ReadResource, days=400)
    age(ReadLog, seconds=290)
    reads.schema(IDS["schema"])
    assert host.asked.total() == 2
    age(ReadLog, seconds=310)
    reads.schema(IDS["schema"])
    assert host.asked == {path_of(DID): 2, path_of(IDS["schema"]): 1}


def test_registries_are_remembered_for_thirty_seconds(host, reads):
    reads.revocation_registry(IDS["registry"])
    age(ReadResource, seconds=25)
    reads.final_status_list(IDS["registry"], 2**40)
    assert host.asked[path_of(IDS["registry"])] == 1
    age(ReadResource, seconds=35)
    reads.final_status_list(IDS["registry"], 2**40)
    assert host.asked[path_of(IDS["registry"])] == 2


def test_a_list_newer_than_what_is_remembered_is_found(host, reads):
    """A prover may name a list that was published since the registry was read."""
    registry = BY_ID[IDS["registry"]]
    older = webvh.signed_again(registry | {"links": registry["links"][:1]})
    host.pages[path_of(IDS["registry"])] = json.dumps(older).encode()
    first = BY_ID[FIRST_LIST]["content"]
    assert reads.status_list(IDS["registry"], TIMES[0]) == first
    host.shows_vectors()
    assert reads.status_list(IDS["registry"], TIMES[0]) == first
    assert host.asked[path_of(IDS["registry"])] == 1
    age(ReadResource, seconds=2)
    now = int(time.time())
    second = BY_ID[SECOND_LIST]["content"]
    assert reads.final_status_list(IDS["registry"], now) == first, "for 30 s"
    assert reads.status_list(IDS["registry"], now) == second


def with_links(host, *links):
    """Let the registry be served with these links: (time, resource)."""
    listed = [
        {"id": name, "type": "anonCredsStatusList", "timestamp": moment}
        for moment, name in links
    ]
    registry = webvh.signed_again(BY_ID[IDS["registry"]] | {"links": listed})
    host.pages[path_of(IDS["registry"])] = json.dumps(registry).encode()


def served(host, base, **changes):
    """Serve a resource with right digest and proof, and other content. Return its id."""
    content = BY_ID[base]["content"] | changes
    digest = encoding.resource_digest(content)
    name = f"{DID}/resources/{digest}"
    metadata = BY_ID[base]["metadata"] | {"resourceId": digest}
    resource = BY_ID[base] | {"id": name, "content": content, "metadata": metadata}
    host.pages[path_of(name)] = json.dumps(webvh.signed_again(resource)).encode()
    return name


def test_a_list_that_no_registry_links_does_not_exist(host, reads):
    """It is signed and served, and yet it may be a draft, or have been taken back."""
    with_links(host, (TIMES[0], FIRST_LIST))
    first = BY_ID[FIRST_LIST]["content"]
    assert reads.status_list(IDS["registry"], TIMES[1]) == first
    assert not reads.is_revoked(IDS["registry"], 3)
    assert not host.asked[path_of(SECOND_LIST)]


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"timestamp": TIMES[1] + 1}, "another_time"),
        ({"revRegDefId": f"{DID}/resources/zQm"}, "list_of_another_registry"),
        ({"revocationList": [0]}, "list_of_another_registry"),
        ({"issuerId": VECTORS["strangersDid"]}, "another_issuer"),
    ],
)
def test_a_linked_list_of_another_time_registry_or_issuer_is_refused(
    host, reads, changes, reason
):
    linked = served(host, SECOND_LIST, **changes)
    with_links(host, (TIMES[0], FIRST_LIST), (TIMES[1], linked))
    for read in (reads.status_list, reads.final_status_list):
        refused = refusal_of(read, IDS["registry"], TIMES[1])
        assert refused == ("resource_refused", reason)


def test_a_link_to_something_else_than_a_list_is_refused(host, reads):
    with_links(host, (TIMES[0], IDS["schema"]))
    refused = refusal_of(reads.status_list, IDS["registry"], TIMES[0])
    assert refused == ("resource_refused", "another_type")


def test_a_linked_list_that_is_missing_is_503(host, reads):
    with_links(host, (TIMES[0], f"{FIRST_LIST[:-1]}1"))
    with pytest.raises(Unavailable) as unavailable:
        reads.status_list(IDS["registry"], TIMES[0])
    assert unavailable.value.code == "ledger_unavailable"


def test_a_log_that_got_shorter_is_refused_for_ever(host, reads):
    reads.schema(IDS["schema"])
    host.pages[path_of(DID)] = webvh.to_bytes(LOG[:1])
    age(ReadLog, seconds=310)
    for _ in range(2):
        refused = refusal_of(reads.schema, IDS["schema"])
        assert refused == ("did_log_forked", "log_forked")


def test_nothing_of_a_deactivated_did_is_read(host, reads):
    [case] = [one for one in VECTORS["logs"] if one["verdict"] == "deactivated"]
    host.pages[path_of(case["did"])] = case["text"].encode()
    asked = f"{case['did']}/resources/{IDS['schema'][-47:]}"
    for _ in range(2):
        refused = refusal_of(reads.schema, asked)
        assert refused == ("did_deactivated", "deactivated")
    assert host.asked.total() == 1


def test_a_key_younger_than_the_remembered_log_is_looked_up(host, reads):
    reads.schema(IDS["schema"])
    entry, resource = webvh.rotated()
    host.pages[path_of(DID)] = webvh.to_bytes([*LOG, entry])
    host.pages[path_of(resource["id"])] = json.dumps(resource).encode()
    assert reads.definition(resource["id"]) == resource["content"]
    assert host.asked[path_of(DID)] == 2


def redirects(call):
    call.answer(302, Location=path_of(IDS["schema"]))


def endless(call):
    call.send_response(200)
    call.end_headers()
    for _ in range(4096):
        call.wfile.write(b" " * 4096)


@pytest.mark.parametrize(
    "page, reason",
    [
        (redirects, "redirect"),
        (endless, "too_long"),
        (b"{}\n" * 10_000, "number_of_entries"),
    ],
)
def test_a_log_that_is_served_wrongly_is_refused(host, reads, page, reason):
    host.pages[path_of(DID)] = page
    assert refusal_of(reads.schema, IDS["schema"]) == ("did_log_refused", reason)


@pytest.mark.parametrize(
    "page, reason", [(redirects, "redirect"), (endless, "too_long")]
)
def test_a_resource_that_is_served_wrongly_is_refused(host, reads, page, reason):
    host.pages[path_of(IDS["schema"])] = page
    assert refusal_of(reads.schema, IDS["schema"]) == ("resource_refused", reason)
    assert not ReadResource.objects.exists()


def test_an_address_that_is_not_public_is_never_called(host, reads, settings):
    """Nor if a second answer of the name system has one."""
    settings.OUTGOING_ALLOW_LOOPBACK = False
    refused = ("did_log_refused", "address_not_public")
    assert refusal_of(reads.schema, IDS["schema"]) == refused
    host.addresses = ["93.184.215.14", "10.0.0.1"]
    assert refusal_of(reads.schema, IDS["schema"]) == refused
    assert not host.asked


def test_a_host_that_answers_first_and_then_leads_inside_is_refused(
    host, reads, settings
):
    reads.schema(IDS["schema"])
    host.addresses = ["169.254.169.254"]
    refused = refusal_of(reads.definition, IDS["definition"])
    assert refused == ("resource_refused", "address_not_public")


def test_a_host_that_fails_at_once_is_503_and_asked_again(host, reads):
    log = host.pages[path_of(DID)]
    host.pages[path_of(DID)] = lambda call: call.answer(500)
    with pytest.raises(Unavailable) as unavailable:
        reads.schema(IDS["schema"])
    assert unavailable.value.code == "ledger_unavailable"
    host.pages[path_of(DID)] = log
    assert reads.schema(IDS["schema"])


def answers_late(call):
    if not call.is_left():
        call.answer(200, webvh.to_bytes(LOG))


def hangs_in_the_middle(call):
    data = webvh.to_bytes(LOG)
    call.send_response(200)
    call.send_header("Content-Length", str(len(data)))
    call.end_headers()
    call.wfile.write(data[:1])
    if not call.is_left():
        call.wfile.write(data[1:])


@pytest.mark.parametrize("page", [answers_late, hangs_in_the_middle])
def test_a_host_that_hangs_is_left_alone_for_a_while(
    host, faber, reads, monkeypatch, page
):
    """The others wait for it once, not once for each message that names it."""
    monkeypatch.setattr(reading, "FETCH_SECONDS", 0.15)
    log = host.pages[path_of(DID)]
    host.pages[path_of(DID)] = page
    with pytest.raises(Unavailable) as unavailable:
        reads.schema(IDS["schema"])
    assert unavailable.value.code == "ledger_unavailable"
    host.pages[path_of(DID)] = log
    for _ in range(10):
        with pytest.raises(Unavailable) as unavailable:
            LedgerReads(faber.tenant).schema(IDS["schema"])
    assert "a moment ago" in unavailable.value.message
    assert host.asked[path_of(DID)] == 1
    reading.silent_until[HOST] -= reading.SILENCE_SECONDS
    assert reads.schema(IDS["schema"])


def test_one_deadline_covers_all_that_an_object_needs(host, reads, monkeypatch):
    log, passed = host.pages[path_of(DID)], [0.0]

    def slow(call):
        passed.append(reading.READ_SECONDS)
        call.answer(200, log)

    host.pages[path_of(DID)] = slow
    later = lambda: time.monotonic() + sum(passed)  # noqa: E731
    monkeypatch.setattr(waiting, "monotonic", later)
    with pytest.raises(Unavailable):
        reads.schema(IDS["schema"])
    assert not host.asked[path_of(IDS["schema"])]


def test_each_organization_and_its_peers_have_a_budget(host, faber, acme, settings):
    settings.WEBVH_READS_PER_MINUTE = 2
    own, of_peers = LedgerReads(acme.tenant), LedgerReads(acme.tenant, for_peer=True)
    own.schema(IDS["schema"])
    with pytest.raises(TooOften):
        own.definition(IDS["definition"])
    assert own.schema(IDS["schema"]), "what is remembered costs nothing"
    assert of_peers.definition(IDS["definition"])
    assert LedgerReads(faber.tenant).revocation_registry(IDS["registry"])


def test_a_transaction_reads_outside_of_itself(reads):
    @network_reads.atomic_with_reads
    def read():
        return reads.schema(IDS["schema"])

    with transaction.atomic(), pytest.raises(network_reads.ReadNeeded):
        reads.schema(IDS["schema"])
    assert read()["name"] == "Degree"


def test_a_refusal_is_raised_inside_of_the_transaction(host, reads):
    host.pages[path_of(DID)] = b""

    @network_reads.atomic_with_reads
    def read():
        return refusal_of(reads.schema, IDS["schema"])

    assert read() == ("did_log_refused", "number_of_entries")


def test_a_did_leads_to_a_party(host, acme):
    entry = webvh.with_service("https://agent.example/didcomm")
    host.pages[path_of(DID)] = webvh.to_bytes([*LOG, entry])
    found = resolver.resolve(DID, acme.tenant)
    assert (found.did, found.endpoint) == (DID, "https://agent.example/didcomm")
    host.pages[path_of(DID)] = webvh.to_bytes(LOG)
    resolver.resolved_dids.clear()
    age(ReadLog, seconds=310)
    with pytest.raises(DidNotResolved) as refused:
        resolver.resolve(DID, acme.tenant)
    assert "log_forked" in refused.value.message


def test_a_did_that_leads_nowhere_is_not_resolved(host, acme):
    for did in (DID.replace(HOST, "127.0.0.1"), DID.replace("demo", "none")):
        with pytest.raises(DidNotResolved):
            resolver.resolve(did, acme.tenant)
