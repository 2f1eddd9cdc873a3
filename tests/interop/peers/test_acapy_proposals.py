"""A prover proposes what it can show, and the verifier asks for it."""

from tests.interop.peers import test_acapy_holder as holding
from tests.interop.peers.agency import reaches
from tests.interop.peers.conftest import VALUES
from tests.interop.peers.exchanges import Proof
from tests.support.processes import eventually


def test_acapy_proposes_a_proof_and_is_asked(faber, degree, issuance, proof, link):
    holding.offer(faber, degree, link, automaticIssuance=True)
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


def wallet_shows(wallet, link, proof, definition, **more):
    """The wallet proposes, is asked and shows. Return (our path, ACA-Py's record)."""
    restrictions = [{"credentialDefinitionId": definition}]
    wanted = [{"policyName": "level", "restrictions": restrictions}]
    body = {"name": "My level", "version": "1.0", "attributes": wanted} | more
    mine = wallet.put(f"/verifications/propose/{link[0]}", body)["verificationId"]
    record = proof.next("proposal-received", connection_id=link[1])
    proof.act(record, "send-request")
    reaches(wallet, f"/verifications/{mine}", "Requested")
    wallet.put(f"/verifications/{mine}/autoSelect")
    return f"/verifications/{mine}", record


def test_a_wallet_proposes_a_proof_to_acapy_and_is_asked(
    alice, visit, badge, proof, their_definition
):
    badge()
    _, record = wallet_shows(alice, visit, proof, their_definition)
    assert proof.verdict(record) is True


def test_a_wallet_that_proposes_a_proof_first_finds_the_format_of_its_verifier(
    agency, current, degree, faber, newly_met
):
    """It cannot verify the first, says nothing, and is proposed the other format."""
    wallet, link = newly_met(current)
    wallet.receives(faber, {"definitionId": degree}, VALUES)
    proof = Proof(current, "2.0")
    path, first = wallet_shows(wallet, link, proof, degree)
    proof.until(first, "presentation-received")
    assert list(first["by_format"]["pres_proposal"]) == ["indy"]
    assert "isValid" not in wallet.get(path)
    agency.lets_a_minute_pass()
    path, second = wallet_shows(wallet, link, proof, degree)
    assert list(second["by_format"]["pres_proposal"]) == ["anoncreds"]
    assert proof.verdict(second) is True
    eventually(lambda: wallet.get(path).get("isValid"))
