"""Public DIDs on the ledger, with ACA-Py: invitations and requests, both ways."""

import pytest

from connections.didcomm.message import decode_json
from tests.interop.peers.agency import reaches
from tests.interop.peers.conftest import accepts, invites, receives
from tests.support.processes import eventually

DIDS = "/tenants/publicDid"


@pytest.fixture(scope="session")
def office(agency, indy_pool):
    """An organization whose endpoint is on the ledger; anybody may ask to connect."""
    made = agency.organization("Office", "indy")
    made.post(DIDS)
    shown = eventually(lambda: published(made))
    assert shown["endpoint"] == f"{agency.url}/didcomm"
    made.put(DIDS, {"acceptsRequests": True})
    indy_pool.settle()
    return made


def published(organization):
    shown = organization.get(DIDS)
    return shown if shown["state"] == "Published" else None


def public_did_of(peer):
    return peer.get("/wallet/did/public")["result"]["did"].removeprefix("did:sov:")


def test_acapy_accepts_an_invitation_by_our_public_did(office, spoken_to):
    peer, handshake = spoken_to
    receives(peer, office, handshake, usePublicDid=True)


def test_acapy_accepts_a_connections_1_0_invitation_by_our_did(office, acapy):
    receives(acapy, office, usePublicDid=True)


def test_a_wallet_accepts_an_invitation_by_the_public_did_of_acapy(office, spoken_to):
    peer, handshake = spoken_to
    invited = invites(peer, handshake, use_public_did=True)
    assert isinstance(invited["invitation"]["services"][0], str)
    accepts(office.hosts("Dora"), peer, handshake, use_public_did=True)


def test_a_wallet_accepts_a_connections_1_0_invitation_by_the_did_of_acapy(
    office, acapy
):
    invited = acapy.post("/connections/create-invitation", public="true")
    assert invited["invitation"]["did"]
    dora = office.hosts("Dora")
    ours = dora.accepts_invitation(invited["invitation_url"])["connectionId"]
    reaches(dora, f"/connections/{ours}", "Connected")


def test_acapy_asks_to_connect_by_our_public_did(office, either):
    did = office.get(DIDS)["did"]
    record = either.post(
        "/didexchange/create-request", their_public_did=f"did:sov:{did}"
    )
    either.until(f"/connections/{record['connection_id']}", state="active")
    rows = office.get("/connections", state="Connected")
    assert either.label in [one["name"] for one in rows]


@pytest.mark.parametrize("is_wallet", [True, False])
def test_we_ask_to_connect_by_the_public_did_of_acapy(office, either, is_wallet):
    caller = office.hosts("Erin") if is_wallet else office
    body = {"did": f"did:sov:{public_did_of(either)}"}
    ours = caller.post("/connections/requests", body)["connectionId"]
    shown = reaches(caller, f"/connections/{ours}", "Connected")
    assert either.endpoint.rstrip("/") in shown["endpoint"]["uri"]

    def labels():
        rows = either.get("/connections", state="active", their_role="requester")
        return [one["their_label"] for one in rows["results"]]

    eventually(lambda: ("Erin" if is_wallet else "Office") in labels())


@pytest.mark.parametrize("is_wallet", [True, False])
def test_we_ask_acapy_by_connections_1_0(office, acapy, is_wallet):
    caller = office.hosts("Fred") if is_wallet else office
    body = {"did": public_did_of(acapy), "handshake": "connections/1.0"}
    known = {one["connectionId"] for one in caller.get("/connections")}
    ours = caller.post("/connections/requests", body)["connectionId"]
    reaches(caller, f"/connections/{ours}", "Connected")
    protocols = caller.get(f"/connections/{ours}/protocols")
    # The organization may have connected with this DID in another test.
    assert ours in known or protocols["handshake"] == "connections/1.0"


def test_acapy_sees_that_its_request_was_refused(agency, indy_pool, either):
    closed = agency.organization("Closed", "indy")
    closed.post(DIDS)
    did = eventually(lambda: published(closed))["did"]
    indy_pool.settle()
    record = either.post("/didexchange/create-request", their_public_did=did)
    path = f"/connections/{record['connection_id']}"
    either.until(path, rfc23_state="abandoned")
    assert "not accepted" in either.get(path)["error_msg"]


def test_a_wallet_reuses_a_connection_by_the_public_did_of_acapy(office, either):
    gina, protocol = office.hosts("Gina"), "didexchange/1.1"
    ours, _ = accepts(gina, either, protocol, use_public_did=True)
    second = invites(either, protocol, use_public_did=True)
    again = gina.accepts_invitation(second["invitation_url"])
    assert again["connectionId"] == ours
    gina.post(f"/connections/{ours}/ping")
    eventually(lambda: gina.get(f"/connections/{ours}/ping").get("answeredAtUtc"))


def test_acapy_reuses_a_connection_by_our_public_did(office, either):
    receives(either, office, "didexchange/1.1", usePublicDid=True)
    before = ids_of(office)
    second = office.invites(
        protocol="out-of-band", handshakes=["didexchange/1.1"], usePublicDid=True
    )
    either.post(
        "/out-of-band/receive-invitation",
        decode_json(second["invitation"]),
        use_existing_connection="true",
    )
    eventually(lambda: second["connectionId"] not in ids_of(office))
    assert ids_of(office) == before


def ids_of(organization):
    return {one["connectionId"] for one in organization.get("/connections")}
