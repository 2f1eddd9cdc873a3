"""Out-of-band invitations in the API: alone, with a message, from known peers."""

import base64
import json

import pytest
from django.conf import settings

from connections.models import Connection
from credentials.models import Credential
from tests.support.errors import assert_error, error_of
from tests.support.steps import step

OUT_OF_BAND = {"protocol": "out-of-band"}
CONNECTING = OUT_OF_BAND | {"handshakes": ["didexchange/1.1", "connections/1.0"]}
VALUES = {"name": "Alice", "degree": "Maths"}
POLICY = {"name": "P", "version": "1.0", "attributes": [{"policyName": "name"}]}


@step
def definition(faber):
    return faber.defines("name", "degree")["definitionId"]


@pytest.fixture
def offer(faber, definition):
    def make(**body):
        body |= {"definitionId": definition, "credentialValues": VALUES}
        return faber.post("/credentials", body | {"automaticIssuance": True})

    return make


def ids_of_connections(party):
    return [one["connectionId"] for one in party.get("/connections")]


def message_in(data):
    return json.loads(base64.b64decode(data))


def kinds_in(body):
    return [one["data"]["json"]["@type"] for one in body.get("requests~attach", [])]


def test_my_did_is_the_one_that_the_peer_got(faber):
    alice, did_of_old = faber.hosts("Alice"), ("connections/1.0", "didexchange/1.0")
    for handshake in (*did_of_old, "didexchange/1.1"):
        terms = {"protocol": "out-of-band", "handshakes": [handshake]}
        invited = faber.invites(**terms)
        mine = alice.accepts_invitation(invited["invitation"])
        theirs = faber.get(f"/connections/{invited['connectionId']}")
        assert theirs["state"] == "Connected"
        assert (mine["myDid"], mine["theirDid"]) == (
            theirs["theirDid"],
            theirs["myDid"],
        )
        is_old = handshake in did_of_old
        assert mine["myDid"].startswith("did:peer:4zQm") is not is_old
        assert faber.get("/connections")[0]["myDid"] == theirs["myDid"]


def test_an_invitation_says_what_its_maker_chose_or_is_what_it_always_was(faber):
    invited = faber.invites(**CONNECTING, goalCode="issue-vc", goal="To issue")
    body, base = message_in(invited["invitation"]), "https://didcomm.org/"
    assert body["@type"] == f"{base}out-of-band/1.1/invitation"
    offered = [one.removeprefix(base) for one in body["handshake_protocols"]]
    assert offered == CONNECTING["handshakes"]
    assert (body["goal_code"], body["goal"]) == ("issue-vc", "To issue")
    assert body["label"] == "Faber College"
    unsaid = {"protocol": None, "handshakes": None}
    for body in ({}, {"protocol": "connections"}, unsaid):
        kind = message_in(faber.invites(**body)["invitation"])["@type"]
        assert kind == f"{base}connections/1.0/invitation"


def test_a_wallet_accepts_it_in_each_form(faber, alice):
    for form in ("invitation", "invitationUrl", "json", "long link"):
        invited = faber.invites(**OUT_OF_BAND)
        given = {
            "json": json.dumps(message_in(invited["invitation"])),
            "long link": f"{invited['invitationUrl']}?oob={invited['invitation']}",
        }
        mine = alice.accepts_invitation(given.get(form) or invited[form])
        assert mine["state"] == "Connected"
        theirs = faber.get(f"/connections/{invited['connectionId']}")
        assert theirs["theirKey"] == mine["myKey"]


@pytest.mark.parametrize(
    "handshake", ["didexchange/1.1", "didexchange/1.0", "connections/1.0"]
)
def test_the_handshake_is_the_one_chosen(faber, alice, handshake):
    chosen = OUT_OF_BAND | {"handshakes": [handshake], "multiParty": True}
    alice.accepts_invitation(faber.invites(**chosen)["invitation"])
    connected = Connection.objects.filter(state="Connected")
    assert set(connected.values_list("handshake", flat=True)) == {handshake}


def test_an_offer_without_a_handshake_is_taken_without_a_connection(alice, offer):
    kind = "https://didcomm.org/issue-credential/2.0/offer-credential"
    for form in ("offerUrl", "offerData"):
        offered = offer(**OUT_OF_BAND, goalCode="issue-vc")
        body = message_in(offered["offerData"])
        assert kinds_in(body) == [kind]
        attached = body["requests~attach"][0]["data"]["json"]
        assert attached["~thread"]["pthid"] == body["@id"]
        assert "handshake_protocols" not in body and body["goal_code"] == "issue-vc"
        taken = alice.put_form("/credentials/fromData", credentialData=offered[form])
        assert (taken["state"], taken["values"]) == ("Issued", VALUES)
    assert alice.get("/connections") == []


def test_an_offer_with_a_handshake_comes_after_connecting(faber, alice, offer):
    offered = offer(**CONNECTING)
    shown = faber.get(f"/connections/{offered['connectionId']}")
    assert shown["invitation"] == offered["offerData"]
    mine = alice.accepts_invitation(offered["offerUrl"])
    assert mine["state"] == "Connected"
    alice.accepts_offer()
    read = faber.get(f"/credentials/{offered['credentialId']}")
    assert (read["state"], read["connectionId"]) == ("Issued", offered["connectionId"])
    assert ids_of_connections(faber) == [read["connectionId"]]
    assert alice.newest("credentials")["connectionId"] == mine["connectionId"]


@pytest.mark.parametrize("is_stored", [True, False])
def test_an_out_of_band_invitation_asks_for_a_proof(faber, alice, offer, is_stored):
    alice.put_form("/credentials/fromData", credentialData=offer()["offerData"])
    path = "/verifications/policy"
    if is_stored:
        stored = faber.post("/verificationPolicies", POLICY)["policyId"]
        asked = faber.put(f"{path}/{stored}", OUT_OF_BAND)
    else:
        asked = faber.post(path, POLICY | OUT_OF_BAND)
    kinds = kinds_in(message_in(asked["verificationRequestData"]))
    assert kinds == ["https://didcomm.org/present-proof/2.0/request-presentation"]
    data = asked["verificationRequestUrl"]
    alice.put_form("/verifications/fromData/autoSelect", verificationData=data)
    result = faber.get(f"/verifications/{asked['verificationId']}")
    assert (result["state"], result["isValid"]) == ("Accepted", True)


@pytest.mark.parametrize("is_connected", [False, True])
def test_a_proof_is_asked_for_after_or_without_connecting(faber, alice, is_connected):
    terms = CONNECTING
    if is_connected:
        terms = CONNECTING | {"reuse": True}
        first = faber.invites(**terms, multiParty=True)
        connected = alice.accepts_invitation(first["invitation"])
    asked = faber.post("/verifications/policy", POLICY | terms)
    mine = alice.accepts_invitation(asked["verificationRequestData"])
    assert not is_connected or mine == connected
    alice.auto_selects()
    read = faber.get(f"/verifications/{asked['verificationId']}")
    assert read["state"] == "Accepted"
    assert alice.newest("verifications")["connectionId"] == mine["connectionId"]
    assert Connection.objects.filter(role="invitee").count() == 1


def test_who_is_connected_already_goes_on_there(faber, alice, offer):
    """RFC 0434, reuse: one connection, and the offer comes on it."""
    first = faber.invites(**CONNECTING, reuse=True)
    mine = alice.accepts_invitation(first["invitation"])
    offered = offer(**CONNECTING, reuse=True)
    assert alice.accepts_invitation(offered["offerData"]) == mine
    alice.accepts_offer()
    read = faber.get(f"/credentials/{offered['credentialId']}")
    assert (read["state"], read["connectionId"]) == ("Issued", first["connectionId"])
    assert ids_of_connections(faber) == [first["connectionId"]]
    assert ids_of_connections(alice) == [mine["connectionId"]]


def test_an_invitation_under_a_lasting_key_connects_many_and_each_once(faber, acme):
    many = faber.invites(**CONNECTING, reuse=True, multiParty=True)["invitation"]
    first = faber.invites(**CONNECTING, reuse=True)["invitation"]
    bob = faber.hosts("Bob")
    connected = bob.accepts_invitation(first)
    assert bob.accepts_invitation(many) == connected, "where it was reused it stays"
    for holder in (faber.hosts("Dave"), acme.hosts("Carol")):
        once = holder.accepts_invitation(many)
        assert once["state"] == "Connected"
        assert holder.accepts_invitation(many) == once
    assert Connection.objects.filter(role="inviter", state="Connected").count() == 3


def test_a_used_or_withdrawn_invitation_under_a_lasting_key_is_409(faber, acme, alice):
    used, reused, withdrawn = (
        faber.invites(**CONNECTING, reuse=True) for _ in range(3)
    )
    mine = alice.accepts_invitation(used["invitation"])
    assert alice.accepts_invitation(reused["invitation"]) == mine
    faber.delete(f"/connections/{withdrawn['connectionId']}")
    bob = acme.hosts("Bob")
    for invited, code in (
        (used, "invitation_used"),
        (reused, "invitation_gone"),
        (withdrawn, "invitation_gone"),
    ):
        error = error_of(bob.accepts_invitation, invited["invitation"])
        assert_error(error, 409, code)
    assert ids_of_connections(faber) == [used["connectionId"]]


def test_a_link_gives_browsers_the_page_and_wallets_the_message(faber, offer):
    for url, heading in (
        (faber.invites(**OUT_OF_BAND)["invitationUrl"], b"invites you to connect"),
        (offer(**OUT_OF_BAND)["offerUrl"], b"offers you a card"),
        (offer(**CONNECTING)["offerUrl"], b"offers you a card"),
    ):
        path = url.removeprefix(settings.PUBLIC_URL)
        redirect = faber.client.get(path, headers={"Accept": "*/*"})
        address, data = redirect["Location"].split("=", 1)
        assert (redirect.status_code, address) == (302, f"{url}?oob")
        for place in (path, redirect["Location"]):
            page = faber.client.get(place, headers={"Accept": "text/html"})
            assert page.status_code == 200 and heading in page.content
        given = faber.client.get(path, headers={"Accept": "application/json"}).json()
        assert given == message_in(data)


def test_what_does_not_fit_is_400_for_its_field(faber):
    for body, field in (
        ({"protocol": "x"}, "protocol"), ({"handshakes": ["connections/1.0"]}, "handshakes"),
        ({"goal": "x"}, "goal"), ({"reuse": True}, "reuse"),
        (OUT_OF_BAND | {"handshakes": []}, "handshakes"),
        (OUT_OF_BAND | {"handshakes": ["x/1.0"]}, "handshakes"),
        (OUT_OF_BAND | {"goal": "x" * 201}, "goal"),
        ({"exchangeVersion": "3.0"}, "exchangeVersion"),
    ):  # fmt: skip
        error = error_of(faber.invites, **body)
        assert error.status == 400
        assert [name.partition("[")[0] for name in error.body["errors"]] == [field]
    assert not Connection.objects.exists()


def test_an_offer_has_terms_of_its_own(faber, alice, offer):
    connected = {"connectionId": alice.known_as(faber)}
    for body, field in (({"reuse": True}, "reuse"), (connected, "protocol")):
        error = error_of(offer, **OUT_OF_BAND, **body)
        assert (error.status, list(error.body["errors"])) == (400, [field])
    assert not Credential.objects.exists()
