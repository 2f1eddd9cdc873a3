"""The same with the current ACA-Py, which speaks DID exchange and the second versions only."""

import pytest

from connections.didcomm.message import decode_json
from tests.interop.peers import test_acapy_holder as holding
from tests.interop.peers import test_acapy_issuer as issuing
from tests.interop.peers.acapy import Refused
from tests.interop.peers.agency import reaches
from tests.interop.peers.conftest import VALUES
from tests.interop.peers.exchanges import Issuance, Proof
from tests.interop.peers.processes import eventually


@pytest.fixture(scope="module")
def link(faber, current):
    """(our id, their id) of a connection that Faber invited to."""
    invited = faber.invites(protocol="out-of-band")
    invitation = decode_json(invited["invitation"])
    theirs = current.post("/out-of-band/receive-invitation", invitation)["connection_id"]
    reaches(faber, f"/connections/{invited['connectionId']}", "Connected")
    current.until(f"/connections/{theirs}", state="active")
    return invited["connectionId"], theirs


@pytest.fixture(scope="module")
def dora(faber):
    return faber.hosts("Dora")


@pytest.fixture(scope="module")
def as_invitee(dora, current):
    """(our id, their id) of a connection that ACA-Py invited Dora to."""
    body = {"handshake_protocols": ["https://didcomm.org/didexchange/1.1"]}
    invited = current.post("/out-of-band/create-invitation", body)
    ours = dora.accepts_invitation(invited["invitation_url"])["connectionId"]
    reaches(dora, f"/connections/{ours}", "Connected")
    record = current.the_one("/connections", invitation_msg_id=invited["invi_msg_id"])
    current.until(f"/connections/{record['connection_id']}", state="active")
    return ours, record["connection_id"]


@pytest.fixture(scope="module")
def their_definition(current):
    """A definition of ACA-Py's that supports revocation."""
    issuer = current.get("/wallet/did/public")["result"]["did"]
    schema = {"issuerId": issuer, "name": "pass", "version": "1.0", "attrNames": list(VALUES)}
    made = current.post("/anoncreds/schema", {"schema": schema})
    definition = {"issuerId": issuer, "schemaId": made["schema_state"]["schema_id"], "tag": "first"}
    options = {"support_revocation": True, "revocation_registry_size": 16}
    body = {"credential_definition": definition, "options": options}
    made = current.post_once_shown("/anoncreds/credential-definition", body)
    return made["credential_definition_state"]["credential_definition_id"]


@pytest.fixture
def issuance(current):
    return Issuance(current, "2.0")


@pytest.fixture
def proof(current):
    return Proof(current, "2.0")


@pytest.mark.parametrize("side", ["inviter", "invitee"])
def test_the_current_acapy_connects_and_answers_a_ping(current, link, as_invitee, side):
    _, theirs = link if side == "inviter" else as_invitee
    assert current.get(f"/connections/{theirs}")["connection_protocol"] == "didexchange/1.1"
    thread = current.post(f"/connections/{theirs}/send-ping")["thread_id"]
    current.webhooks.hears("ping", thread_id=thread, state="response_received")


def test_texts_go_both_ways_with_the_current_acapy(faber, current, link):
    ours, theirs = link
    faber.post("/messages", {"connectionId": ours, "text": "Ahoj"})
    assert current.webhooks.hears("basicmessages", content="Ahoj")["connection_id"] == theirs
    current.post(f"/connections/{theirs}/send-message", {"content": "Nazdar"})
    texts = eventually(lambda: faber.get(f"/messages/connection/{ours}", direction="Incoming"))
    assert [one["text"] for one in texts] == ["Nazdar"]


def test_the_current_acapy_rotates_its_did_and_is_still_reached(faber, current):
    invited = faber.invites(protocol="out-of-band")
    body = decode_json(invited["invitation"])
    theirs = current.post("/out-of-band/receive-invitation", body)["connection_id"]
    current.until(f"/connections/{theirs}", state="active")
    made = current.post("/wallet/did/create", {"method": "did:peer:4"})["result"]["did"]
    current.post(f"/did-rotate/{theirs}/rotate", {"to_did": made})
    eventually(lambda: current.get(f"/connections/{theirs}")["my_did"] == made)
    shown = faber.get(f"/connections/{invited['connectionId']}")
    assert made.startswith(shown["theirDid"])
    faber.post("/messages", {"connectionId": invited["connectionId"], "text": "Rotated?"})
    current.webhooks.hears("basicmessages", content="Rotated?")


def test_the_current_acapy_gets_a_credential_and_proves_it(
    current, faber, degree, link, issuance, proof
):
    offered = holding.offer(faber, degree, link, automaticIssuance=True)
    held = issuance.stored(issuance.accept(link[1]))
    reaches(faber, f"/credentials/{offered}", "Issued")
    assert current.get(f"/credential/{held}")["attrs"] == VALUES
    body = holding.policy(degree, ["Full Name"], [holding.AT_LEAST_7])
    asked = holding.ask(faber, link, body)
    record = proof.next("request-received", connection_id=link[1])
    proof.present(record, held)
    shown = reaches(faber, f"/verifications/{asked}", "Accepted")
    assert shown["isValid"] is True, shown["checks"]
    assert shown["proof"]["Full Name"]["value"] == VALUES["Full Name"]
    proof.until(record, "done")


def test_the_current_acapy_cannot_prove_a_predicate_that_does_not_hold(
    faber, degree, link, issuance, proof
):
    holding.offer(faber, degree, link, automaticIssuance=True)
    held = issuance.stored(issuance.accept(link[1]))
    asked = holding.ask(faber, link, holding.policy(degree, [], [holding.MORE_THAN_7]))
    with pytest.raises(Refused, match="[Pp]redicate"):
        proof.present(proof.next("request-received", connection_id=link[1]), held)
    reaches(faber, f"/verifications/{asked}", "Rejected")


def test_the_current_acapy_declines_an_offer_and_a_request(faber, degree, link, issuance, proof):
    offered = holding.offer(faber, degree, link)
    issuance.decline(issuance.next("offer-received", connection_id=link[1]))
    reaches(faber, f"/credentials/{offered}", "Rejected")
    asked = holding.ask(faber, link, holding.policy(degree, ["level"]))
    proof.decline(proof.next("request-received", connection_id=link[1]))
    reaches(faber, f"/verifications/{asked}", "Rejected")


def test_the_current_acapy_cannot_prove_what_was_revoked(
    current, faber, degree, link, issuance, proof
):
    offered = holding.offer(faber, degree, link, automaticIssuance=True)
    held = issuance.stored(issuance.accept(link[1]))
    reaches(faber, f"/credentials/{offered}", "Issued")
    verdicts = []
    for revoked in (False, True):
        if revoked:
            faber.delete(f"/credentials/{offered}")
            stored = current.get(f"/credential/{held}")
            place = f"{stored['rev_reg_id']}::{stored['cred_rev_id']}"
            current.webhooks.hears("revocation-notification-v2", credential_id=place)
            eventually(lambda: current.get(f"/credential/revoked/{held}")["revoked"])
        body = holding.policy(degree, ["level"], **holding.NOW)
        asked = holding.ask(faber, link, body)
        proof.present(proof.next("request-received", connection_id=link[1]), held)
        shown = reaches(faber, f"/verifications/{asked}", "Accepted")
        verdicts.append(shown["isValid"])
    assert verdicts == [True, False]


def test_a_request_of_ours_out_of_band_is_answered_by_the_current_acapy(
    current, faber, degree, link, issuance, proof
):
    holding.offer(faber, degree, link, automaticIssuance=True)
    held = issuance.stored(issuance.accept(link[1]))
    body = holding.policy(degree, ["level"]) | {"protocol": "out-of-band"}
    asked = faber.post("/verifications/policy", body)
    invitation = decode_json(asked["verificationRequestData"])
    received = current.post("/out-of-band/receive-invitation", invitation)
    record = proof.next("request-received", thread_id=received["attach_thread_id"])
    proof.present(record, held)
    assert reaches(faber, f"/verifications/{asked['verificationId']}", "Accepted")["isValid"]


def test_an_offer_of_ours_out_of_band_is_taken_by_the_current_acapy(
    faber, current, degree, issuance
):
    body = {"definitionId": degree, "credentialValues": VALUES, "automaticIssuance": True}
    offered = faber.post("/credentials", body | {"protocol": "out-of-band"})
    invitation = decode_json(offered["offerData"])
    received = current.post("/out-of-band/receive-invitation", invitation)
    record = issuance.next("offer-received", thread_id=received["attach_thread_id"])
    issuance.act(record, "send-request")
    issuance.until(record, "done")
    reaches(faber, f"/credentials/{offered['credentialId']}", "Issued")


@pytest.mark.parametrize("handshakes", [["didexchange/1.1"], []])
def test_a_request_of_the_current_acapy_out_of_band_is_answered(
    faber, current, issuance, proof, their_definition, dora, as_invitee, handshakes
):
    issued(dora, issuance, as_invitee[1], their_definition)
    item = {"name": "level", "restrictions": [{"cred_def_id": their_definition}]}
    asked = {"name": "Shared", "version": "1.0", "requested_predicates": {}}
    record = proof.ask_anybody(asked | {"requested_attributes": {"level": item}})
    body = {"attachments": [{"id": record["pres_ex_id"], "type": "present-proof"}]}
    body["handshake_protocols"] = [f"https://didcomm.org/{one}" for one in handshakes]
    link = current.post("/out-of-band/create-invitation", body)["invitation_url"]
    if handshakes:
        dora.accepts_invitation(link)
        issuing.shows(dora)
    else:
        dora.put_form("/verifications/fromData/autoSelect", verificationData=link)
    assert proof.verdict(record) is True


def issued(dora, issuance, connection_id, definition_id, **values):
    """What ACA-Py issues to Dora: (our id, its record)."""
    record = issuance.offer(connection_id, definition_id, VALUES | values)
    offered = eventually(lambda: issuing.offers(dora))[0]["credentialId"]
    dora.post(f"/credentials/{offered}")
    reaches(dora, f"/credentials/{offered}", "Issued")
    return offered, issuance.until(record, "done")


def test_a_wallet_gets_a_credential_of_the_current_acapy_and_proves_it(
    dora, as_invitee, issuance, proof, their_definition
):
    ours, _ = issued(dora, issuance, as_invitee[1], their_definition)
    assert dora.get(f"/credentials/{ours}")["values"] == VALUES
    predicate = {"name": "level", "p_type": ">=", "p_value": 7}
    items = (issuing.NAME, predicate)
    name, level = (issuing.restricted(one, their_definition) for one in items)
    record = issuing.asks(proof, as_invitee[1], [name], [level])
    issuing.shows(dora)
    assert proof.verdict(record) is True
    more = issuing.restricted(predicate | {"p_type": ">"}, their_definition)
    record = issuing.asks(proof, as_invitee[1], [], [more])
    issuing.shows(dora)
    assert proof.verdict(record) is False


def test_a_wallet_declines_an_offer_and_a_request_of_the_current_acapy(
    dora, as_invitee, issuance, proof, their_definition
):
    record = issuance.offer(as_invitee[1], their_definition, VALUES)
    ours = eventually(lambda: issuing.offers(dora))[0]["credentialId"]
    dora.post(f"/credentials/{ours}/decline")
    issuance.until(record, "abandoned")
    record = issuing.asks(proof, as_invitee[1], [issuing.LEVEL])
    ours = eventually(lambda: issuing.requests(dora))[0]["verificationId"]
    dora.put(f"/verifications/{ours}/decline")
    proof.until(record, "abandoned")


def test_a_revocation_by_the_current_acapy_is_seen(
    current, dora, as_invitee, issuance, proof, their_definition
):
    ours, record = issued(dora, issuance, as_invitee[1], their_definition, level="1")
    details = record["details"]
    body = {"rev_reg_id": details["rev_reg_id"], "cred_rev_id": details["cred_rev_id"]}
    body |= {"publish": True, "notify": True, "notify_version": "v2_0"}
    current.post("/anoncreds/revocation/revoke", body | {"connection_id": as_invitee[1]})
    reaches(dora, f"/credentials/{ours}", "Revoked")
    item = issuing.restricted({"name": "level", "p_type": "<", "p_value": 2}, their_definition)
    asked = issuing.asks(proof, as_invitee[1], [], [item], non_revoked={"to": issuing.now()})
    issuing.shows(dora)
    assert proof.verdict(asked) is False
