"""Hosted wallets invite, write and ping; both sides choose versions by link."""

import pytest

from connections.didcomm.message import decode_json
from connections.models import Connection
from connections.protocols import trust_ping
from credentials.models import Credential
from tests.support import queues
from tests.support.errors import assert_error, error_of
from verifications.models import Verification

VALUES = {"name": "Alice", "level": "7"}
POLICY = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}


def test_a_hosted_wallet_invites(faber, acme, alice):
    bob = acme.hosts("Bob")
    invited = alice.post("/connections", {"connectionId": "bob"})
    assert (invited["connectionId"], invited["state"]) == ("bob", "Invited")
    assert decode_json(invited["invitation"])["label"] == "Alice"
    mine = bob.accepts_invitation(invited["invitationUrl"])
    assert (mine["state"], mine["name"]) == ("Connected", "Alice")
    assert alice.get("/connections/bob")["state"] == "Connected"
    assert faber.get("/connections") == []
    taken = error_of(alice.post, "/connections", {"connectionId": "bob"})
    assert taken.code == "connection_id_taken"


def test_a_hosted_wallet_invites_out_of_band_but_has_no_key_that_stays(faber, alice):
    bob = faber.hosts("Bob")
    terms = {"protocol": "out-of-band", "multiParty": True}
    invited = alice.post("/connections", terms)
    assert bob.accepts_invitation(invited["invitation"])["state"] == "Connected"
    refused = error_of(alice.post, "/connections", terms | {"reuse": True})
    assert refused.body["errors"]["reuse"]


def test_a_hosted_wallet_writes_and_reads(faber, met):
    theirs, mine = met.known[faber]
    met.post("/messages", {"connectionId": mine, "text": "Hello"})
    [received] = faber.get(f"/messages/connection/{theirs}")
    assert (received["text"], received["direction"]) == ("Hello", "Incoming")
    [sent] = met.get(f"/messages/connection/{mine}")
    assert (sent["text"], sent["direction"]) == ("Hello", "Outgoing")
    assert met.get(f"/messages/{sent['id']}")["text"] == "Hello"
    for other in (faber.hosts("Bob"), faber):
        for path in (f"/messages/{sent['id']}", f"/messages/connection/{mine}"):
            assert_error(error_of(other.get, path), 404, "not_found")


def test_a_ping_to_a_party_here_is_answered_in_the_call(faber, met):
    for caller, connection_id in zip((faber, met), met.known[faber], strict=True):
        path = f"/connections/{connection_id}/ping"
        assert caller.get(path) == {"connectionId": connection_id}
        answered = caller.post(path)
        assert answered["connectionId"] == connection_id
        assert answered["answeredAtUtc"] >= answered["sentAtUtc"]
        assert 0 <= answered["milliseconds"] < 10_000
        assert caller.get(path) == answered


def test_a_ping_to_another_agent_shows_when_it_answered(faber, row, phone):
    path = f"/connections/{row.connection_id}/ping"
    assert faber.post(path).keys() == {"connectionId", "sentAtUtc"}
    queues.sweep()
    ping = phone.newest(trust_ping.PING)
    assert ping.body["response_requested"] is True
    phone.says(phone.build(trust_ping.PING_RESPONSE, "another-thread"))
    assert "answeredAtUtc" not in faber.get(path)
    phone.says(phone.build(trust_ping.PING_RESPONSE, ping.id))
    answered = faber.get(path)
    assert answered["milliseconds"] >= 0
    phone.says(phone.build(trust_ping.PING_RESPONSE, ping.id))
    assert faber.get(path) == answered
    faber.post(path)
    assert "answeredAtUtc" not in faber.get(path)


def test_nothing_is_pinged_before_or_after_a_connection(faber, met):
    path = f"/connections/{faber.invites()['connectionId']}"
    assert_error(error_of(faber.post, f"{path}/ping"), 409, "wrong_state")
    path = f"/connections/{met.known_as(faber)}"
    faber.post(f"{path}/hangup")
    assert_error(error_of(faber.post, f"{path}/ping"), 409, "connection_gone")


@pytest.mark.parametrize(
    "protocol, version", [(None, "2.0"), ("out-of-band", "1.0"), (None, "1.0")]
)
def test_the_version_by_link_is_the_one_chosen(faber, alice, badge, protocol, version):
    terms = {"protocol": protocol, "exchangeVersion": version}
    body = {"definitionId": badge["definitionId"], "credentialValues": VALUES}
    offered = faber.post("/credentials", body | terms | {"automaticIssuance": True})
    alice.put_form("/credentials/fromData", credentialData=offered["offerData"])
    assert faber.get(f"/credentials/{offered['credentialId']}")["state"] == "Issued"
    asked = faber.post("/verifications/policy", POLICY | terms)
    data = asked["verificationRequestData"]
    alice.put_form("/verifications/fromData/autoSelect", verificationData=data)
    assert faber.get(f"/verifications/{asked['verificationId']}")["isValid"] is True
    assert_version(version)


def test_a_stored_policy_is_shared_in_the_chosen_version(faber):
    policy_id = faber.post("/verificationPolicies", POLICY)["policyId"]
    terms = {"protocol": "out-of-band", "handshakes": ["connections/1.0"]}
    faber.put(f"/verifications/policy/{policy_id}", terms | {"exchangeVersion": "1.0"})
    assert Verification.objects.get().wire_version == "1.0"
    assert Connection.objects.get().exchange_version == "1.0"


def assert_version(version):
    for model in (Credential, Verification):
        assert set(model.objects.values_list("wire_version", flat=True)) == {version}


def test_a_connection_has_its_version_already(faber, met, badge):
    body = {"connectionId": met.known_as(faber)}
    body["definitionId"] = badge["definitionId"]
    error = error_of(faber.post, "/credentials", body | {"exchangeVersion": "2.0"})
    assert_error(error, 400, "invalid_request")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_holder_proposes_in_the_chosen_version(faber, met, version):
    mine, wanted = met.known[faber][1], {"credentialValues": VALUES}
    met.put(f"/credentials/propose/{mine}", wanted | {"exchangeVersion": version})
    [proposed] = faber.get("/credentials")
    assert "exchangeVersion" not in proposed["proposal"]
    met.put(f"/verifications/propose/{mine}", POLICY | {"exchangeVersion": version})
    assert_version(version)


def test_a_hosted_wallet_chooses_the_version_of_a_connection(faber, met):
    theirs, path = (f"/connections/{one}/protocols" for one in met.known[faber])
    assert met.get(path)["exchangeVersion"] == "auto"
    seen = met.put(path, {"exchangeVersion": "2.0"})
    assert (seen["exchangeVersion"], seen["presentProof"]) == ("2.0", "2.0")
    assert faber.get(theirs)["exchangeVersion"] == "auto"
