"""ACA-Py reads did:webvh by its plugin, which nobody publishes as a package."""

import os

import pytest

from tests.interop.peers import test_acapy_holder as holding
from tests.interop.peers.acapy import CURRENT, Acapy
from tests.interop.peers.conftest import RUNNING, receives
from tests.interop.peers.exchanges import Issuance, Proof

FOLDERS = os.environ.get("ACAPY_WEBVH")
pytestmark = pytest.mark.skipif(not FOLDERS, reason="ACAPY_WEBVH names no plugin.")


@pytest.fixture(scope="module")
def reader(agency_on_web, hosts, tmp_path_factory):
    """It reads no ledger."""
    environment = {
        "PYTHONPATH": os.pathsep.join([os.path.dirname(hosts.authorities), FOLDERS]),
        "SSL_CERT_FILE": hosts.authorities,
        "REQUESTS_CA_BUNDLE": hosts.authorities,
    }
    folder = tmp_path_factory.mktemp("reader")
    options = ("--no-ledger", "--plugin", "webvh")
    RUNNING["Wendy"] = agent = Acapy(
        CURRENT, folder, "Wendy", *options, environment=environment
    )
    try:
        yield agent.wait_until_ready()
    finally:
        agent.stop()


def test_acapy_takes_our_credential_and_proves_it_until_it_is_revoked(
    agency_on_web, reader
):
    faber = agency_on_web.organization("Faber", "webvh")
    acme = agency_on_web.organization("Acme")
    definition = faber.defines(*holding.VALUES, supportRevocation=True)["definitionId"]
    link, verifier = (receives(reader, one, "didexchange/1.1") for one in (faber, acme))
    issuance, proof = Issuance(reader, "2.0"), Proof(reader, "2.0")
    offered = holding.offer(faber, definition, link, automaticIssuance=True)
    issuance.accept(link[1])
    faber.reaches(f"/credentials/{offered}", "Issued")

    def shown():
        policy = holding.policy(definition, ["level"], **holding.NOW)
        asked = holding.ask(acme, verifier, policy)
        proof.present(proof.next("request-received", connection_id=verifier[1]))
        return acme.reaches(f"/verifications/{asked}", "Accepted")

    found = shown()
    assert found["isValid"] is True, found["checks"]
    faber.delete(f"/credentials/{offered}")
    assert shown()["isValid"] is False
