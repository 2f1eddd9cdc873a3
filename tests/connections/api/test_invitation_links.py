"""Invitations as callers send them: links, base64 of any kind, JSON, other texts."""

import base64
import json
from urllib.parse import parse_qs, urlsplit

from django.conf import settings

from connections.didcomm import message
from connections.models import Connection
from tenants.models import Tenant
from tests.support.errors import assert_error, error_of

ENDLESS = "https://x.example/?c_i=" + "A" * 19_000


def forms(invited):
    text = invited["invitation"]
    body = base64.b64decode(text).decode()
    indented = json.dumps(json.loads(body), indent=1, ensure_ascii=False).encode()
    return {
        "data": text,
        "json": body,
        "base64url": base64.urlsafe_b64encode(indented).decode().rstrip("="),
        "base64": base64.b64encode(indented).decode(),
        "link": invited["invitationUrl"],
        "qr": f"{invited['invitationUrl']}?c_i={text}",
        "deep link": f"didcomm://launch/?c_i={text}",
    }


def test_an_invitation_is_read_in_every_form(faber, alice, subtests):
    for form in ("data", "json", "base64url", "base64", "link", "qr", "deep link"):
        with subtests.test(form):
            invited = faber.invites(name="Grüße > ?")
            mine = alice.accepts_invitation(forms(invited)[form])
            assert mine["state"] == "Connected"
            assert alice.accepts_invitation(forms(invited)[form]) == mine, "again"
    given = faber.invites()["invitationUrl"] + "/"
    assert alice.accepts_invitation(given)["state"] == "Connected"


def test_what_is_no_invitation_is_400(alice, subtests):
    for given in (
        "x", "{", "{}", "[]", "e30", "https://[", "https://x.example",
        "http://x/?c_i=%FF", ENDLESS,
        "https://[::1/?c_i=e30", "://", "eyJAdHlwZSI6MX0", "{" + '"a":[' * 40,
    ):  # fmt: skip
        with subtests.test(given[:40]):
            error = error_of(alice.accepts_invitation, given)
            assert error.status == 400
            assert not Connection.objects.exists()


def test_a_link_without_a_token_leads_to_nobodys_row(acme, alice):
    """Rows of invitees and of many-time invitations have none."""
    bob = acme.hosts("Bob")
    bob.accepts_invitation(acme.invites(multiParty=True)["invitation"])
    for given in ("/i/", "/i//", "/i"):
        error = error_of(alice.accepts_invitation, settings.PUBLIC_URL + given)
        assert error.status == 400
    assert alice.get("/connections") == []


def offer_by_link(faber):
    values = {"name": "Secret", "level": "7"}
    body = {"definitionId": faber.defines(*values)["definitionId"]}
    return faber.post("/credentials", body | {"credentialValues": values})


def test_an_invitation_with_a_wrong_member_is_400(faber, alice, subtests):
    body = message.decode_json(faber.invites()["invitation"])
    for members in (
        {"recipientKeys": []}, {"recipientKeys": [7]},
        {"recipientKeys": ["z" * 15_000]},
        {"recipientKeys": None, "did": "did:sov:x"},
        {"serviceEndpoint": 7}, {"serviceEndpoint": {}},
        {"@type": "https://didcomm.org/out-of-band/1.1/invitation"},
        {"@id": "x" * 129}, {"label": 1e999},
    ):  # fmt: skip
        with subtests.test(str(members)[:60]):
            error = error_of(alice.accepts_invitation, json.dumps(body | members))
            assert error.status == 400
            assert not Connection.objects.filter(role="invitee").exists()


def test_an_invitation_that_another_wallet_used_is_409(faber, acme, alice):
    invited = faber.invites()
    mine = acme.hosts("Bob").accepts_invitation(invited["invitation"])
    theirs = faber.get(f"/connections/{invited['connectionId']}")
    assert mine["state"] == theirs["state"] == "Connected"
    error = error_of(alice.accepts_invitation, invited["invitation"])
    assert_error(error, 409, "invitation_used")
    assert alice.get("/connections/invitations") == []


def landed(client, link, **headers):
    """Follow redirects. Return the query of the last address, and the response."""
    answer = client.get(link.removeprefix(settings.PUBLIC_URL), headers=headers)
    if answer.status_code == 302:
        link = answer["Location"]
        answer = client.get(link.removeprefix(settings.PUBLIC_URL), headers=headers)
    assert answer.status_code == 200
    return parse_qs(urlsplit(link).query), answer


def test_a_program_that_follows_an_invitation_finds_it_under_both_names(faber, client):
    """The vendor's wallet reads `d_m`, others `c_i`."""
    invited = faber.invites()
    link, text = invited["invitationUrl"], invited["invitation"]
    for wanted in (None, "*/*", "application/json, text/plain, */*"):
        headers = {"Accept": wanted} if wanted else {}
        query, answer = landed(client, link, **headers)
        assert query == {"c_i": [text], "d_m": [text]}
        assert [*query] == ["c_i", "d_m"], "in this order"
    assert answer.json() == message.decode_json(text)
    query, answer = landed(client, link, Accept="application/json")
    assert (query, answer.json()) == ({}, message.decode_json(text)), "no redirect"


def test_a_link_that_was_taken_shows_nobody_what_it_held(faber, alice, client):
    offered = offer_by_link(faber)
    query, _ = landed(client, offered["offerUrl"])
    assert query == {"d_m": [offered["offerData"]]}, "an offer has one name"
    link = offered["offerUrl"].partition("?")[0]
    path = link.removeprefix(settings.PUBLIC_URL)
    wanted = {"headers": {"Accept": "application/json"}}
    for one in (path, f"{path}/qr.svg"):
        assert client.get(one, **wanted).status_code == 200
    alice.put_form("/credentials/fromData", credentialData=link)
    for one in (path, f"{path}/qr.svg"):
        assert_error(client.get(one, **wanted), 410, "invitation_used")


def test_the_name_of_an_invitation_is_what_the_holder_sees(faber, alice):
    office, neither = ("Office", "Office"), ("Faber College", "Alice")
    for body, names in (
        ({"name": "Office", "protocol": "connections"}, office),
        ({"name": "Office", "protocol": "out-of-band"}, office),
        ({}, neither), ({"name": ""}, neither),
    ):  # fmt: skip
        invited = faber.invites(**body)
        label = message.decode_json(invited["invitation"])["label"]
        mine = alice.accepts_invitation(invited["invitation"])
        theirs = faber.get(f"/connections/{invited['connectionId']}")
        assert (mine["name"], theirs["name"]) == names and label == names[0]
        assert theirs["state"] == "Connected"


def test_an_invitee_sees_what_it_has_accepted(faber, alice):
    Tenant.objects.update(image_url="https://faber.example/logo.png")
    for protocol, query in (("connections", "c_i"), ("out-of-band", "oob")):
        invited = faber.invites(protocol=protocol)
        mine = alice.accepts_invitation(invited["invitation"])
        assert mine["imageUrl"] == "https://faber.example/logo.png"
        assert mine["invitation"] == invited["invitation"]
        link = f"{settings.PUBLIC_URL}/?{query}={invited['invitation']}"
        assert mine["invitationUrl"] == link
        assert alice.accepts_invitation(link) == mine
        assert alice.get("/connections")[0] == mine
