"""A prover proposes what it can show, and the verifier asks for it."""

import pytest

from tests.interop.peers import test_acapy_issuer as issuing
from tests.interop.peers.agency import reaches
from tests.interop.peers.conftest import VALUES
from tests.interop.peers.exchanges import Issuance
from tests.interop.peers.processes import eventually


def issued_to_acapy(faber, acapy, degree, link, version):
    body = {"definitionId": degree, "connectionId": link[0], "credentialValues": VALUES}
    faber.post("/credentials", body | {"automaticIssuance": True})
    Issuance(acapy, version).accept(link[1])


def test_acapy_proposes_a_proof_and_is_asked(
    faber, acapy, degree, proof, version, as_inviter, by_exchange
):
    link = as_inviter if version == "1.0" else by_exchange
    issued_to_acapy(faber, acapy, degree, link, version)
    record = proof.propose(link[1], "level", degree)
    proposed = eventually(lambda: proposals(faber, link[0]))[0]["verificationId"]
    faber.put(f"/verifications/proposal/{proposed}/connections/{link[0]}")
    proof.present(proof.until(record, "request-received"))
    shown = reaches(faber, f"/verifications/{proposed}", "Accepted")
    assert shown["isValid"] is True, shown["checks"]


def proposals(faber, connection_id):
    wanted = ("Proposed", connection_id)
    listed = faber.get("/verifications")
    return [one for one in listed if (one["state"], one.get("connectionId")) == wanted]


@pytest.fixture
def met(faber, acapy, version):
    """A new wallet, with (our id, their id) of a connection on which this version is spoken."""
    wallet = faber.hosts("Petra")
    handshake = "connections/1.0" if version == "1.0" else "didexchange/1.1"
    body = {"handshake_protocols": [f"https://didcomm.org/{handshake}"]}
    invited = acapy.post("/out-of-band/create-invitation", body)
    ours = wallet.accepts_invitation(invited["invitation_url"])["connectionId"]
    reaches(wallet, f"/connections/{ours}", "Connected")
    record = acapy.the_one("/connections", invitation_msg_id=invited["invi_msg_id"])
    acapy.until(f"/connections/{record['connection_id']}", state="active")
    return wallet, (ours, record["connection_id"])


def test_a_wallet_proposes_a_proof_to_acapy_and_is_asked(met, issuance, proof, their_definition):
    wallet, (ours, theirs) = met
    record = issuance.offer(theirs, their_definition, VALUES)
    offered = eventually(lambda: issuing.offers(wallet))[0]["credentialId"]
    wallet.post(f"/credentials/{offered}")
    issuance.until(record, "done")
    restrictions = [{"credentialDefinitionId": their_definition}]
    wanted = [{"policyName": "level", "restrictions": restrictions}]
    body = {"name": "My level", "version": "1.0", "attributes": wanted}
    mine = wallet.put(f"/verifications/propose/{ours}", body)
    record = proof.next("proposal-received", connection_id=theirs)
    proof.act(record, "send-request")
    reaches(wallet, f"/verifications/{mine['verificationId']}", "Requested")
    wallet.put(f"/verifications/{mine['verificationId']}/autoSelect")
    assert proof.verdict(record) is True
