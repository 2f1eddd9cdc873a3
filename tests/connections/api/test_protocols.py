"""Protocol versions, key rotation and hangup between parties hosted here."""

import pytest

from connections.didcomm import message as didcomm
from connections.models import Connection
from connections.protocols import did_rotate
from tests.support.errors import assert_error, error_of
from webhooks.models import Event

VALUES = {"name": "Alice", "degree": "Maths"}
ASKED = [{"policyName": "name"}]


@pytest.fixture
def alice(met):
    return met


@pytest.fixture
def path(faber, alice):
    return f"/connections/{alice.known_as(faber)}"


def wires(faber, alice):
    """The versions of an offer and a request made now."""
    faber.offers(alice, faber.defines("name", "degree"), VALUES)
    faber.asks(alice, attributes=ASKED)
    connection = Connection.objects.get(connection_id=alice.known_as(faber))
    exchanges = connection.credential_set.last(), connection.verification_set.last()
    return [one.wire_version for one in exchanges]


def versions(protocols):
    return [
        protocols[one] for one in ("exchangeVersion", "issueCredential", "presentProof")
    ]


def test_the_version_follows_the_handshake_until_one_is_chosen(faber, alice, path):
    protocols = faber.get(f"{path}/protocols")
    assert protocols["handshake"] == "connections/1.0"
    assert versions(protocols) == ["auto", "1.0", "1.0"]
    for version in ("2.0", "1.0"):
        chosen = faber.put(f"{path}/protocols", {"exchangeVersion": version})
        assert versions(chosen) == [version] * 3
        assert wires(faber, alice) == [version] * 2


def test_auto_is_the_version_spoken_last_and_invitations_say_theirs(faber, alice, path):
    faber.put(f"{path}/protocols", {"exchangeVersion": "2.0"})
    alice.receives(faber, faber.defines("name", "degree"), VALUES)
    protocols = faber.put(f"{path}/protocols", {"exchangeVersion": "auto"})
    assert versions(protocols) == ["auto", "2.0", "1.0"]
    invited = faber.invites(exchangeVersion="2.0", multiParty=True)
    faber.hosts("Bob").accepts_invitation(invited["invitation"])
    connected = faber.get("/connections", state="Connected")[0]
    protocols = faber.get(f"/connections/{connected['connectionId']}/protocols")
    assert versions(protocols) == ["2.0", "2.0", "2.0"]


def test_a_chosen_format_is_that_of_the_first_contact_and_implies_2_0(
    faber, alice, path
):
    definition = faber.defines("name", "degree")
    assert faber.get(f"{path}/protocols")["attachmentFormat"] == "auto"
    for chosen in ("anoncreds", "hlindy"):
        shown = faber.put(f"{path}/protocols", {"attachmentFormat": chosen})
        assert shown["attachmentFormat"] == chosen
        assert versions(shown) == ["auto", "2.0", "2.0"]
        faber.offers(alice, definition, VALUES)
        faber.asks(alice, attributes=ASKED)
        connection = Connection.objects.get(connection_id=alice.known_as(faber))
        for made in (connection.credential_set, connection.verification_set):
            last = made.order_by("pk").last()
            assert (last.wire_version, last.wire_format) == ("2.0", chosen)
    shown = faber.put(f"{path}/protocols", {"exchangeVersion": "1.0"})
    assert shown["attachmentFormat"] == "hlindy", "what is left out stays"
    assert versions(shown) == ["1.0"] * 3
    shown = faber.put(f"{path}/protocols", {"attachmentFormat": "auto"})
    assert shown["attachmentFormat"] == "auto"
    error = error_of(faber.put, f"{path}/protocols", {"attachmentFormat": "jwt"})
    assert_error(error, 400, "invalid_request")


def test_invitations_and_links_say_their_format(faber):
    for protocol in ("connections", "out-of-band"):
        terms = {"attachmentFormat": "anoncreds", "protocol": protocol}
        invited = faber.invites(**terms, multiParty=True)
        faber.hosts(protocol).accepts_invitation(invited["invitation"])
        connected = faber.get("/connections", state="Connected")[0]
        path = f"/connections/{connected['connectionId']}/protocols"
        assert faber.get(path)["attachmentFormat"] == "anoncreds"
    definition = faber.defines("name")["definitionId"]
    terms = {"protocol": "out-of-band", "attachmentFormat": "anoncreds"}
    offer = {"definitionId": definition, "credentialValues": {"name": "Ann"}}
    made = faber.post("/credentials", offer | terms)
    shown = didcomm.decode_json(made["offerData"])["requests~attach"][0]
    [form] = shown["data"]["json"]["formats"]
    assert form["format"] == "anoncreds/credential-offer@v1.0"
    policy = {"name": "P", "version": "1.0", "attributes": ASKED}
    made = faber.post("/verifications/policy", policy | terms)
    shown = didcomm.decode_json(made["verificationRequestData"])["requests~attach"][0]
    [form] = shown["data"]["json"]["formats"]
    assert form["format"] == "anoncreds/proof-request@v1.0"


def test_another_version_is_400_and_no_connection_404(faber, acme, path):
    for body in ({}, {"exchangeVersion": "3.0"}, {"exchangeVersion": None}):
        error = error_of(faber.put, f"{path}/protocols", body)
        assert_error(error, 400, "invalid_request")
    open_path = f"/connections/{faber.invites()['connectionId']}"
    assert_error(error_of(acme.get, f"{path}/protocols"), 404, "not_found")
    for last in ("rotate", "hangup"):
        assert_error(error_of(acme.post, f"{path}/{last}"), 404, "not_found")
        early = error_of(faber.post, f"{open_path}/{last}")
        assert_error(early, 409, "wrong_state")


def test_after_new_keys_on_both_sides_all_goes_on(faber, alice, path):
    definition = faber.defines("name", "degree", supportRevocation=True)
    offered = faber.offers(alice, definition, VALUES)
    asked = faber.asks(alice, attributes=ASKED)
    former = faber.get(path)
    assert faber.post(f"{path}/rotate")["rotationPending"] is False
    did_rotate.rotate(Connection.objects.get(role="invitee"))
    assert faber.get(path)["myKey"] != former["myKey"]
    assert faber.get(path)["theirKey"] == former["theirKey"]
    alice.accepts_offer()
    assert faber.get(path)["theirKey"] != former["theirKey"]
    faber.put(f"/credentials/{offered['credentialId']}")
    alice.auto_selects()
    assert faber.get(f"/verifications/{asked['verificationId']}")["isValid"] is True
    faber.delete(f"/credentials/{offered['credentialId']}")
    assert alice.newest("credentials")["state"] == "Revoked"


def test_keys_rotate_again_and_again(faber, alice, path):
    seen = {faber.post(f"{path}/rotate") and faber.get(path)["myKey"] for _ in range(4)}
    assert len(seen) == 4
    body = {"connectionId": alice.known_as(faber), "text": "Still here"}
    faber.post("/messages", body)
    assert alice.get("/connections")[0]["theirKey"] in seen


def test_an_ended_connection_is_kept_and_carries_nothing_more(faber, alice, path):
    definition = faber.defines("name", "degree", supportRevocation=True)
    alice.receives(faber, definition, VALUES)
    faber.offers(alice, definition, VALUES)
    ended = faber.post(f"{path}/hangup")["endedAtUtc"]
    mine = alice.get("/connections")[0]
    assert faber.get(path)["endedAtUtc"] == ended and mine["endedAtUtc"] >= ended
    assert (faber.get(path)["state"], mine["state"]) == ("Connected", "Connected")
    for party in (faber, alice):
        states = [one["state"] for one in party.get("/credentials")]
        assert states == ["Rejected", "Issued"]
    text = {"connectionId": alice.known_as(faber), "text": "Hello?"}
    assert_error(error_of(faber.post, "/messages", text), 409, "connection_gone")
    assert_error(error_of(faber.post, f"{path}/rotate"), 409, "connection_gone")
    assert faber.post(f"{path}/hangup")["endedAtUtc"] == ended
    assert Event.objects.filter(type="connection_ended").count() == 2, "once for each"
    faber.delete(f"/credentials/{faber.get('/credentials')[1]['credentialId']}")
    assert faber.get("/credentials")[1]["state"] == "Revoked"


def test_after_the_end_both_connect_anew(faber):
    alice, terms = faber.hosts("Alice"), {"protocol": "out-of-band", "reuse": True}
    first, second = faber.invites(**terms), faber.invites(**terms)
    before = alice.accepts_invitation(first["invitation"])
    faber.post(f"/connections/{first['connectionId']}/hangup")
    after = alice.accepts_invitation(second["invitation"])
    assert after["connectionId"] != before["connectionId"]
    assert faber.get(f"/connections/{second['connectionId']}")["state"] == "Connected"
