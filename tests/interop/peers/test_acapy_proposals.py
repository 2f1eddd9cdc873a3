"""A prover proposes what it can show, and the verifier asks for it."""

from tests.interop.peers.agency import reaches
from tests.interop.peers.conftest import VALUES
from tests.interop.peers.processes import eventually


def test_acapy_proposes_a_proof_and_is_asked(faber, degree, issuance, proof, link):
    body = {
        "definitionId": degree,
        "connectionId": link[0],
        "credentialValues": VALUES,
    }
    faber.post("/credentials", body | {"automaticIssuance": True})
    issuance.accept(link[1])
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


def test_a_wallet_proposes_a_proof_to_acapy_and_is_asked(
    alice, visit, badge, proof, their_definition
):
    ours, theirs = visit
    badge()
    restrictions = [{"credentialDefinitionId": their_definition}]
    wanted = [{"policyName": "level", "restrictions": restrictions}]
    body = {"name": "My level", "version": "1.0", "attributes": wanted}
    mine = alice.put(f"/verifications/propose/{ours}", body)
    record = proof.next("proposal-received", connection_id=theirs)
    proof.act(record, "send-request")
    reaches(alice, f"/verifications/{mine['verificationId']}", "Requested")
    alice.put(f"/verifications/{mine['verificationId']}/autoSelect")
    assert proof.verdict(record) is True
