"""An organization issues to ACA-Py as holder, and verifies what it shows."""

import pytest

from connections.didcomm.message import decode_json
from tests.interop.peers.acapy import Refused
from tests.interop.peers.agency import (
    neighbour_of,
    reaches,
    revoke_after_request,
)
from tests.interop.peers.conftest import VALUES
from tests.support.processes import eventually
from tests.support.rounds import ROUNDS


@pytest.fixture
def issue(faber, degree, link, issuance):
    """A function that issues to ACA-Py; answers (our id, its record)."""

    def issue(**values):
        offered = offer(faber, degree, link, automaticIssuance=True, **values)
        record = issuance.accept(link[1])
        reaches(faber, f"/credentials/{offered}", "Issued")
        return offered, record

    return issue


def offer(faber, degree, link, automaticIssuance=False, **values):
    body = {
        "definitionId": degree,
        "connectionId": link[0],
        "credentialValues": VALUES | values,
    }
    return faber.post("/credentials", body | {"automaticIssuance": automaticIssuance})[
        "credentialId"
    ]


def policy(degree, attributes=(), predicates=(), **more):
    restrictions = {"restrictions": [{"credentialDefinitionId": degree}]}
    body = {"name": "Proof", "version": "1.0", **more}
    body["attributes"] = [{"policyName": name, **restrictions} for name in attributes]
    body["predicates"] = [one | restrictions for one in predicates]
    return body


def ask(faber, link, body):
    return faber.post(f"/verifications/policy/connections/{link[0]}", body)[
        "verificationId"
    ]


AT_LEAST_7 = {"attributeName": "level", "predicateType": ">=", "predicateValue": 7}
MORE_THAN_7 = {"attributeName": "level", "predicateType": ">", "predicateValue": 7}
NOW = {"revocationRequirement": {"validNow": True}}


def test_acapy_gets_a_credential(peer, issue, issuance, degree):
    _, record = issue()
    stored = peer.get(f"/credential/{issuance.stored(record)}")
    assert (stored["attrs"], stored["cred_def_id"]) == (VALUES, degree)


def test_a_credential_is_issued_by_hand(faber, degree, link, issuance):
    ours = offer(faber, degree, link)
    record = issuance.next("offer-received", connection_id=link[1])
    issuance.act(record, "send-request")
    reaches(faber, f"/credentials/{ours}", "Requested")
    faber.put(f"/credentials/{ours}")
    issuance.until(record, "done")


def test_an_offer_that_acapy_declines_is_rejected_and_it_hears_of_a_withdrawn_one(
    faber, degree, link, issuance
):
    ours = offer(faber, degree, link)
    issuance.decline(issuance.next("offer-received", connection_id=link[1]))
    reaches(faber, f"/credentials/{ours}", "Rejected")
    ours = offer(faber, degree, link)
    record = issuance.next("offer-received", connection_id=link[1])
    faber.delete(f"/credentials/delete/{ours}")
    issuance.until(record, "abandoned")


def test_a_value_and_a_predicate_of_acapy_are_valid(faber, degree, link, issue, proof):
    issue()
    ours = ask(faber, link, policy(degree, ["Full Name"], [AT_LEAST_7]))
    record = proof.next("request-received", connection_id=link[1])
    proof.present(record)
    shown = reaches(faber, f"/verifications/{ours}", "Accepted")
    assert shown["isValid"] is True, shown["checks"]
    assert shown["proof"]["Full Name"]["value"] == VALUES["Full Name"]
    proof.until(record, "done")


def test_a_predicate_that_does_not_hold_is_not_proven(
    faber, degree, link, issue, proof
):
    issue()
    ours = ask(faber, link, policy(degree, [], [MORE_THAN_7]))
    record = proof.next("request-received", connection_id=link[1])
    with pytest.raises(Refused, match="[Pp]redicate"):
        proof.present(record)
    reaches(faber, f"/verifications/{ours}", "Rejected")


def test_a_request_that_acapy_declines_is_rejected_and_it_hears_of_a_withdrawn_one(
    faber, degree, link, proof
):
    ours = ask(faber, link, policy(degree, ["level"]))
    proof.decline(proof.next("request-received", connection_id=link[1]))
    reaches(faber, f"/verifications/{ours}", "Rejected")
    ours = ask(faber, link, policy(degree, ["level"]))
    record = proof.next("request-received", connection_id=link[1])
    faber.delete(f"/verifications/{ours}")
    proof.until(record, "abandoned")


def test_acapy_sees_a_revocation_and_cannot_prove_any_more(
    faber, degree, link, issue, issuance, proof
):
    ours, record = issue(level="1")
    held = issuance.stored(record)
    less = {"attributeName": "level", "predicateType": "<", "predicateValue": 2}
    body = policy(degree, [], [less], **NOW)
    before = ask(faber, link, body)
    proof.present(proof.next("request-received", connection_id=link[1]), held)
    assert reaches(faber, f"/verifications/{before}", "Accepted")["isValid"] is True
    faber.delete(f"/credentials/{ours}")
    hears_of_the_revocation(issuance, held)
    after = ask(faber, link, body)
    proof.present(proof.next("request-received", connection_id=link[1]), held)
    shown = reaches(faber, f"/verifications/{after}", "Accepted")
    assert shown["isValid"] is False
    failed = [one["code"] for one in shown["checks"] if one["status"] == "fail"]
    assert failed == ["revoked_or_invalid"]


def test_acapy_is_believed_while_somebody_else_is_revoked(
    faber, degree, link, issue, issuance, proof
):
    ours, record = issue(level="1")
    held = issuance.stored(record)
    registry = faber.get(f"/credentials/{ours}")["revocationRegistryId"]
    for _ in range(ROUNDS):
        neighbour = neighbour_of(faber, degree, VALUES)
        assert faber.get(neighbour)["revocationRegistryId"] == registry
        asked = ask(faber, link, policy(degree, ["level"], **NOW))
        received = proof.next("request-received", connection_id=link[1])
        revoke_after_request(faber, neighbour)
        proof.present(received, held)
        shown = reaches(faber, f"/verifications/{asked}", "Accepted")
        assert shown["isValid"] is True, shown["checks"]


def hears_of_the_revocation(issuance, held):
    """By the notice and, when it looks there, from the ledger."""
    peer, stored = issuance.agent, issuance.agent.get(f"/credential/{held}")
    place = f"{stored['rev_reg_id']}::{stored['cred_rev_id']}"
    if issuance.version == "1.0":
        peer.webhooks.hears("revocation-notification", thread_id=f"indy::{place}")
    else:
        peer.webhooks.hears("revocation-notification-v2", credential_id=place)
    eventually(lambda: peer.get(f"/credential/revoked/{held}")["revoked"])


def test_a_request_of_an_out_of_band_invitation_is_answered_without_a_connection(
    peer, faber, degree, issue, proof
):
    issue()
    terms = {"protocol": "out-of-band", "exchangeVersion": proof.version}
    asked = faber.post("/verifications/policy", policy(degree, ["Full Name"]) | terms)
    invitation = decode_json(asked["verificationRequestData"])
    received = peer.post("/out-of-band/receive-invitation", invitation)
    assert not received.get("connection_id")
    record = proof.next("request-received", thread_id=received["attach_thread_id"])
    proof.present(record)
    shown = reaches(faber, f"/verifications/{asked['verificationId']}", "Accepted")
    assert shown["isValid"] is True
    proof.until(record, "done")


def test_an_offer_of_an_out_of_band_invitation_is_taken_without_a_connection(
    peer, faber, degree, issuance
):
    body = {
        "definitionId": degree,
        "credentialValues": VALUES,
        "automaticIssuance": True,
    }
    terms = {"protocol": "out-of-band", "exchangeVersion": issuance.version}
    offered = faber.post("/credentials", body | terms)
    received = peer.post(
        "/out-of-band/receive-invitation", decode_json(offered["offerData"])
    )
    record = issuance.next("offer-received", thread_id=received["attach_thread_id"])
    issuance.act(record, "send-request")
    issuance.until(record, "done")
    reaches(faber, f"/credentials/{offered['credentialId']}", "Issued")
