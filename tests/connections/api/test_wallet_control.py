"""Hosted wallets invite, write and ping; both sides choose versions by link."""

import pytest

from connections.didcomm.message import decode_json
from connections.models import Connection
from connections.protocols import trust_ping
from credentials.models import Credential
from tests.support import queues
from tests.support.errors import assert_error, error_of
from tests.support.people import ApiError, Organization
from verifications.models import Verification

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"name": "Alice", "level": "7"}
POLICY = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}


def test_a_hosted_wallet_invites(faber):
    alice, bob = faber.hosts("Alice"), Organization("Acme").hosts("Bob")
    invited = alice.post("/connections", {"connectionId": "bob"})
    assert (invited["connectionId"], invited["state"]) == ("bob", "Invited")
    assert decode_json(invited["invitation"])["label"] == "Alice"
    mine = bob.accepts_invitation(invited["invitationUrl"])
    assert (mine["state"], mine["name"]) == ("Connected", "Alice")
    assert alice.get("/connections/bob")["state"] == "Connected"
    assert faber.get("/connections") == []
    with pytest.raises(ApiError) as taken:
        alice.post("/connections", {"connectionId": "bob"})
    assert taken.value.code == "connection_id_taken"


def test_a_hosted_wallet_invites_out_of_band_but_has_no_key_that_stays(faber):
    alice, bob = faber.hosts("Alice"), faber.hosts("Bob")
    terms = {"protocol": "out-of-band", "multiParty": True}
    invited = alice.post("/connections", terms)
    assert bob.accepts_invitation(invited["invitation"])["state"] == "Connected"
    with pytest.raises(ApiError) as refused:
        alice.post("/connections", terms | {"reuse": True})
    assert refused.value.body["errors"]["reuse"]


def test_a_hosted_wallet_writes_and_reads(faber):
    alice = faber.hosts("Alice")
    theirs, mine = alice.known_as(faber), alice.newest("connections")["connectionId"]
    alice.post("/messages", {"connectionId": mine, "text": "Hello"})
    [received] = faber.get(f"/messages/connection/{theirs}")
    assert (received["text"], received["direction"]) == ("Hello", "Incoming")
    [sent] = alice.get(f"/messages/connection/{mine}")
    assert (sent["text"], sent["direction"]) == ("Hello", "Outgoing")
    assert alice.get(f"/messages/{sent['id']}")["text"] == "Hello"
    bob = faber.hosts("Bob")
    for path in (f"/messages/{sent['id']}", f"/messages/connection/{mine}"):
        with pytest.raises(ApiError) as missing:
            bob.get(path)
        assert missing.value.status == 404
    for path in (f"/messages/{sent['id']}", f"/messages/connection/{mine}"):
        with pytest.raises(ApiError) as missing:
            faber.get(path)
        assert missing.value.status == 404


def test_a_ping_to_a_party_here_is_answered_in_the_call(faber):
    alice = faber.hosts("Alice")
    mine = alice.meets(faber)["connectionId"]
    for caller, connection_id in ((faber, alice.known_as(faber)), (alice, mine)):
        path = f"/connections/{connection_id}/ping"
        assert caller.get(path) == {"connectionId": connection_id}
        answered = caller.post(path)
        assert answered["connectionId"] == connection_id
        assert answered["answeredAtUtc"] >= answered["sentAtUtc"]
        assert 0 <= answered["milliseconds"] < 10_000
        assert caller.get(path) == answered


def test_a_ping_to_another_agent_shows_when_it_answered(faber, phone):
    connection_id = phone.connects(faber).connection_id
    path = f"/connections/{connection_id}/ping"
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


def test_nothing_is_pinged_before_or_after_a_connection(faber):
    invited = faber.invites()["connectionId"]
    assert_error(
        error_of(faber.post, f"/connections/{invited}/ping"), 409, "wrong_state"
    )
    connection_id = faber.hosts().known_as(faber)
    faber.post(f"/connections/{connection_id}/hangup")
    path = f"/connections/{connection_id}/ping"
    assert_error(error_of(faber.post, path), 409, "connection_gone")


@pytest.mark.parametrize(
    "terms", [{}, {"protocol": "out-of-band"}], ids=["plain", "oob"]
)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_the_version_by_link_is_the_one_chosen(faber, terms, version):
    alice, definition = faber.hosts(), faber.defines("name", "level")
    body = {"definitionId": definition["definitionId"], "credentialValues": VALUES}
    chosen = terms | {"exchangeVersion": version, "automaticIssuance": True}
    offered = faber.post("/credentials", body | chosen)
    alice.put_form("/credentials/fromData", credentialData=offered["offerData"])
    assert faber.get(f"/credentials/{offered['credentialId']}")["state"] == "Issued"
    assert set(Credential.objects.values_list("wire_version", flat=True)) == {version}
    asked = faber.post(
        "/verifications/policy", POLICY | terms | {"exchangeVersion": version}
    )
    data = asked["verificationRequestData"]
    alice.put_form("/verifications/fromData/autoSelect", verificationData=data)
    assert faber.get(f"/verifications/{asked['verificationId']}")["isValid"] is True
    versions = Verification.objects.values_list("wire_version", flat=True)
    assert set(versions) == {version}


def test_a_stored_policy_is_shared_in_the_chosen_version(faber):
    policy_id = faber.post("/verificationPolicies", POLICY)["policyId"]
    terms = {"protocol": "out-of-band", "handshakes": ["connections/1.0"]}
    faber.put(f"/verifications/policy/{policy_id}", terms | {"exchangeVersion": "1.0"})
    assert Verification.objects.get().wire_version == "1.0"
    assert Connection.objects.get().exchange_version == "1.0"


def test_a_connection_has_its_version_already(faber):
    connection_id = faber.hosts().known_as(faber)
    definition_id = faber.defines("name", "level")["definitionId"]
    body = {"definitionId": definition_id, "connectionId": connection_id}
    error = error_of(faber.post, "/credentials", body | {"exchangeVersion": "2.0"})
    assert_error(error, 400, "invalid_request")


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_holder_proposes_in_the_chosen_version(faber, version):
    alice, definition = faber.hosts(), faber.defines("name", "level")
    mine = alice.meets(faber)["connectionId"]
    wanted = {"definitionId": definition["definitionId"], "credentialValues": VALUES}
    alice.put(f"/credentials/propose/{mine}", wanted | {"exchangeVersion": version})
    [proposed] = faber.get("/credentials")
    assert "exchangeVersion" not in proposed["proposal"]
    path = f"/credentials/{proposed['credentialId']}"
    faber.put(f"{path}/offer", {"automaticIssuance": True})
    alice.accepts_offer()
    assert faber.get(path)["state"] == "Issued"
    alice.put(f"/verifications/propose/{mine}", POLICY | {"exchangeVersion": version})
    for model in (Credential, Verification):
        assert set(model.objects.values_list("wire_version", flat=True)) == {version}


def test_a_hosted_wallet_chooses_the_version_of_a_connection(faber):
    alice = faber.hosts()
    mine = alice.meets(faber)["connectionId"]
    path = f"/connections/{mine}/protocols"
    assert alice.get(path)["exchangeVersion"] == "auto"
    seen = alice.put(path, {"exchangeVersion": "2.0"})
    assert (seen["exchangeVersion"], seen["presentProof"]) == ("2.0", "2.0")
    theirs = f"/connections/{alice.known_as(faber)}/protocols"
    assert faber.get(theirs)["exchangeVersion"] == "auto"
