"""Discovery of the other side's protocols, key rotation, and hangup."""

import pytest

from tests.interop.peers import test_acapy_holder as holding
from tests.interop.peers.conftest import receives
from tests.interop.peers.exchanges import Issuance
from tests.support.processes import eventually


@pytest.fixture
def peer(either):
    return either


@pytest.fixture
def link(faber, peer):
    """(our id, their id) of a new connection by DID exchange."""
    return receives(peer, faber, "didexchange/1.1")


def spoken(faber, link):
    return faber.get(f"/connections/{link[0]}/protocols")


def test_acapy_tells_which_protocols_it_speaks(faber, link):
    families = eventually(lambda: spoken(faber, link).get("disclosed"))
    assert {"issue-credential/2.0", "present-proof/2.0", "did-rotate/1.0"} <= set(
        families
    )


def test_acapy_is_asked_on_connections_1_0_before_the_first_offer(faber, acapy, degree):
    link = receives(acapy, faber, name="Rex")
    shown = spoken(faber, link)
    assert (shown["disclosed"], shown["issueCredential"]) == ([], "1.0")
    holding.offer(faber, degree, link)
    # On a slow machine the answer may come after this offer was made.
    disclosed = eventually(lambda: spoken(faber, link)["disclosed"])
    assert {"issue-credential/1.0", "issue-credential/2.0"} <= set(disclosed)
    assert spoken(faber, link)["issueCredential"] == "2.0"
    holding.offer(faber, degree, link)
    Issuance(acapy, "2.0").next("offer-received", connection_id=link[1])


def test_acapy_agrees_to_a_new_key_of_ours(faber, peer, link):
    eventually(lambda: "did-rotate/1.0" in spoken(faber, link).get("disclosed", []))
    before = faber.get(f"/connections/{link[0]}")["myKey"]
    assert faber.post(f"/connections/{link[0]}/rotate")["rotationPending"]
    eventually(lambda: not spoken(faber, link)["rotationPending"])
    assert faber.get(f"/connections/{link[0]}")["myKey"] != before
    thread = peer.post(f"/connections/{link[1]}/send-ping")["thread_id"]
    peer.webhooks.hears("ping", thread_id=thread, state="response_received")


def test_acapy_hears_that_we_end_a_connection(faber, peer, link):
    eventually(lambda: spoken(faber, link).get("disclosed"))
    assert faber.post(f"/connections/{link[0]}/hangup")["endedAtUtc"]
    eventually(lambda: link[1] not in peer.connections())


def test_we_hear_that_acapy_ends_a_connection(faber, peer, link):
    peer.post(f"/did-rotate/{link[1]}/hangup")
    eventually(lambda: "endedAtUtc" in faber.get(f"/connections/{link[0]}"))


def test_the_current_acapy_takes_a_new_did_and_is_still_reached(faber, current):
    ours, theirs = receives(current, faber, "didexchange/1.1")
    did = current.post("/wallet/did/create", {"method": "did:peer:4"})
    made = did["result"]["did"]
    current.post(f"/did-rotate/{theirs}/rotate", {"to_did": made})
    eventually(lambda: current.get(f"/connections/{theirs}")["my_did"] == made)
    assert made.startswith(faber.get(f"/connections/{ours}")["theirDid"])
    faber.post("/messages", {"connectionId": ours, "text": "Rotated?"})
    current.webhooks.hears("basicmessages", content="Rotated?")
