"""What a DID resolves to: on the networks, over https, and within limits."""

import json
from contextlib import ExitStack
from unittest.mock import Mock

import pytest

from connections import resolver
from connections.didcomm import dids
from connections.resolver import DidNotResolved, resolve
from core.errors import TooOften, Unavailable
from core.work import waiting
from credentials.ledgers import indy, ledger_of
from credentials.ledgers.indy import pool, reads
from tenants.models import Network
from tests.factories import NetworkFactory
from tests.fixtures.wire_vectors import VECTORS, VERKEY_B
from tests.support.http_endpoints import certificate, serving, sleeps
from tests.support.remote_ledger import moved
from wallets import keys
from wallets.models import Wallet

ENDPOINT = "https://office.example/didcomm"


@pytest.fixture
def office(acme):
    """The wallet of an organization whose endpoint is published."""
    wallet = Wallet.objects.get(tenant=acme.tenant, is_organization=True)
    ledger_of(acme.tenant.network).publish_endpoint(wallet.did, ENDPOINT)
    return wallet


@pytest.fixture
def web(tmp_path, settings):
    """A function that serves a document over https, and returns its DID.

    document: without the id. other: the response, if it is not this document.
    is_endless: nothing follows it, and the connection stays open.
    """
    path, context = certificate(tmp_path, "localhost")
    settings.OUTGOING_CA_FILE = str(path)
    settings.OUTGOING_ALLOW_LOOPBACK = True
    opened = ExitStack()

    def serve(document=None, other=None, path="", identifier=None, is_endless=False):
        asked = []

        def meet(connection):
            asked.append(connection.recv(65536).split(b"\r\n")[0].decode())
            body = json.dumps({"id": identifier or did} | (document or {})).encode()
            head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n"
            connection.sendall(other or head.encode() + body)
            if is_endless:
                sleeps(connection)

        place = opened.enter_context(serving(*[meet] * 5, context=context))
        did = "did:web:localhost%3A" + place.partition(":")[2] + path
        return did, asked

    with opened:
        yield serve


def code_of(did, tenant):
    with pytest.raises(DidNotResolved) as refused:
        resolve(did, tenant)
    return refused.value.code


def test_a_did_of_the_local_network_is_resolved(faber, office):
    for spelling in ("{}", "did:sov:{}", "did:sov:{}#did-communication"):
        found = resolve(spelling.format(office.did), faber.tenant)
        assert found == (office.did, office.public_key.verkey, ENDPOINT, [])
    did = Wallet.objects.get(tenant=faber.tenant, is_organization=True).did
    assert resolve(did, faber.tenant).endpoint == "", "it is not published"
    with pytest.raises(DidNotResolved):
        resolver.resolve_reachable(did, faber.tenant)
    for did in (VECTORS["did_peer_4_long"], VECTORS["didkey_B"]):
        assert resolve(did, faber.tenant).verkey == VERKEY_B, "it has its document"


def test_what_leads_nowhere_has_one_code(faber, subtests):
    for did in (
        "did:sov:V4SGRU86Z58d6TV7PBUe6f", "did:example:123", "did:web:",
        "did:web:a/../b", "did:web:user@host", "did:web:host:..:x?",
        "nothing\0at all", "x" * 9000,
    ):  # fmt: skip
        with subtests.test(did[:40]):
            assert code_of(did, faber.tenant) == "did_not_resolved"


def test_did_web_is_read_at_its_address_but_not_from_this_machine(faber, web, settings):
    document = dids.own_document(VERKEY_B, ENDPOINT)
    did, asked = web(document)
    assert resolve(did, faber.tenant) == (did, VERKEY_B, ENDPOINT, [])
    assert asked == ["GET /.well-known/did.json HTTP/1.1"]
    did, asked = web(document, path=":offices:north")
    assert resolve(did, faber.tenant).did == did
    assert asked == ["GET /offices/north/did.json HTTP/1.1"]
    did, asked = web(document)
    settings.OUTGOING_ALLOW_LOOPBACK = False
    assert code_of(did, faber.tenant) == "did_not_resolved"
    assert not asked


def test_a_bad_document_of_did_web_is_refused(faber, web, subtests):
    other_did = {"identifier": "did:web:example.com"}
    for given in (
        other_did | {"document": dids.own_document(VERKEY_B, ENDPOINT)},
        {"document": {"verificationMethod": []}},
        {"other": b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}"},
        {"other": b"HTTP/1.1 301 Moved\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"},
        {"other": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nno!!"},
        {"other": b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + b" " * 99999},
        {"other": b"not http"},
    ):
        with subtests.test(str(given)[:70]):
            did, asked = web(**given)
            assert code_of(did, faber.tenant) == "did_not_resolved"
            assert len(asked) == 1


@pytest.mark.parametrize("limit", ["of its own", "of the call"])
def test_a_slow_did_web_has_a_deadline(faber, web, monkeypatch, limit):
    """The server sends a part, and the rest never."""
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{"
    did, asked = web(other=body, is_endless=True)
    get = Mock(wraps=resolver.http.get)
    monkeypatch.setattr(resolver.http, "get", get)
    if limit == "of its own":
        monkeypatch.setattr(resolver, "FETCH_TIMEOUT_SECONDS", 0.15)
    with waiting.limit_waiting(0.15 if limit == "of the call" else 60):
        assert code_of(did, faber.tenant) == "did_not_resolved"
    assert len(asked) == 1 and get.call_args.kwargs["timeout"] <= 0.15


def test_an_answer_is_remembered_for_a_minute(faber, web, monkeypatch):
    did, asked = web(dids.own_document(VERKEY_B, ENDPOINT))
    assert resolve(did, faber.tenant) == resolve(did, faber.tenant)
    assert len(asked) == 1
    monkeypatch.setattr(resolver, "MEMORY_SECONDS", -1)
    resolver.resolved_dids.clear()
    assert resolve(did, faber.tenant) == resolve(did, faber.tenant)
    assert len(asked) == 3


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(resolver, "MAX_REMEMBERED", 2)
    network, memory = NetworkFactory.build(), resolver.resolved_dids
    for number in range(4):
        memory.add(network, f"did:web:{number}", number)
    found = [memory.find(network, f"did:web:{number}") for number in range(4)]
    assert found == [None, None, 2, 3]


def test_strangers_do_not_use_up_the_organizations_own_reads(faber, acme, settings):
    settings.DIDS_PER_MINUTE = 2
    for number in (1, 2):
        with pytest.raises(DidNotResolved):
            resolve(f"did:example:{number}", faber.tenant, is_stranger=True)
    with pytest.raises(TooOften):
        resolve("did:example:3", faber.tenant, is_stranger=True)
    assert code_of("did:example:3", faber.tenant) == "did_not_resolved"
    with pytest.raises(DidNotResolved):
        resolve("did:example:3", acme.tenant, is_stranger=True)


@pytest.fixture
def far(faber, monkeypatch):
    """Faber on an Indy ledger; a dictionary of its DIDs: (verkey, endpoint)."""
    written = {}

    def fetch_nym(network, did):
        if did not in written:
            return None
        verkey = written[did][0]
        return reads.Nym(verkey, may_write=False, may_endorse=False)

    monkeypatch.setattr(reads, "fetch_nym", fetch_nym)
    monkeypatch.setattr(reads, "fetch_endpoint", lambda network, did: written[did][1])
    moved(faber)
    faber.tenant.refresh_from_db()
    return written


def test_a_did_of_an_indy_ledger_is_resolved_and_a_local_one_known(faber, office, far):
    did, mediator = keys.did_of(VERKEY_B), keys.verkey_of(keys.generate_seed())
    for verkey in (VERKEY_B, indy.abbreviate_verkey(VERKEY_B)):
        far[did] = (verkey, {"endpoint": ENDPOINT, "routingKeys": [mediator]})
        resolver.resolved_dids.clear()
        assert resolve(did, faber.tenant) == (did, VERKEY_B, ENDPOINT, [mediator])
    for endpoint in (None, {}, {"endpoint": 7}, {"ha": "1.2.3.4"}):
        far[did] = (VERKEY_B, endpoint)
        resolver.resolved_dids.clear()
        assert resolve(did, faber.tenant).endpoint == ""
    assert resolve(office.did, faber.tenant).endpoint == ENDPOINT


def test_a_silent_ledger_is_asked_later(faber, far, monkeypatch):
    def silent(network, did):
        raise pool.no_response(network)

    monkeypatch.setattr(reads, "fetch_nym", silent)
    with pytest.raises(Unavailable) as away:
        resolve(keys.did_of(VERKEY_B), faber.tenant)
    assert away.value.code == "ledger_unavailable"
    assert Network.objects.filter(kind="indy").exists()
