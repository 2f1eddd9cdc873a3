"""kill -9 in the middle of an exchange with ACA-Py 0.12.8: it goes on after a restart."""

import signal

import pytest

from tests.interop.peers.agency import reaches
from tests.interop.peers.conftest import VALUES
from tests.interop.peers.exchanges import Issuance
from tests.interop.peers.processes import eventually


@pytest.fixture
def issuance(acapy):
    return Issuance(acapy, "2.0")


@pytest.fixture
def offered(faber, degree, by_exchange):
    """A function that offers a credential; answers our id."""

    def offer():
        body = {"definitionId": degree, "credentialValues": VALUES, "automaticIssuance": True}
        return faber.post("/credentials", body | {"connectionId": by_exchange[0]})["credentialId"]

    return offer


def test_a_message_that_was_on_its_way_when_the_worker_was_killed_arrives(
    agency, acapy, faber, issuance, offered, by_exchange
):
    worker = agency.services["worker"]
    acapy.process.signal(signal.SIGSTOP)
    try:
        ours = offered()
        eventually(lambda: agency.rows("connections_outboundmessage", "lease_owner IS NOT NULL"))
        worker.kill()
    finally:
        acapy.process.signal(signal.SIGCONT)
    agency.lets_leases_run_out()
    worker.start()
    issuance.accept(by_exchange[1])
    reaches(faber, f"/credentials/{ours}", "Issued")


def test_what_came_while_no_worker_lived_is_processed(
    agency, faber, issuance, offered, by_exchange
):
    ours = offered()
    record = issuance.next("offer-received", connection_id=by_exchange[1])
    worker = agency.services["worker"]
    worker.signal(signal.SIGSTOP)
    issuance.act(record, "send-request")
    eventually(lambda: agency.rows("connections_inboundmessage", "status = 'pending'"))
    worker.kill()
    assert faber.get(f"/credentials/{ours}")["state"] == "Offered"
    agency.lets_leases_run_out()
    worker.start()
    issuance.until(record, "done", 40)
    reaches(faber, f"/credentials/{ours}", "Issued")


def test_acapy_reaches_a_web_server_that_was_killed(agency, faber, issuance, offered, by_exchange):
    ours = offered()
    record = issuance.next("offer-received", connection_id=by_exchange[1])
    web = agency.services["web"]
    web.kill()
    issuance.act(record, "send-request")
    web.start()
    agency.wait_until_ready()
    issuance.until(record, "done", 60)
    reaches(faber, f"/credentials/{ours}", "Issued")
