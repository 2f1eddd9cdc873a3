"""Invitations as callers send them: links, base64 of any kind, JSON, other texts."""

import base64
import json
from urllib.parse import parse_qs, urlsplit

import pytest
from django.conf import settings

from connections.didcomm import message
from connections.models import Connection
from tenants.models import Tenant
from tests.support.errors import assert_error, error_of
from tests.support.pages import pages

__all__ = ["pages"]

ENDLESS = "https://x.example/?c_i=" + "A" * 19_000


@pytest.fixture
def alice(faber):
    return faber.hosts("Alice")


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
            assert (
                alice.accepts_invitation(forms(invited)[form])["state"] == "Connected"
            )


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


@pytest.mark.parametrize("given", ["/i/", "/i//", "/i"])
def test_a_link_without_a_token_leads_to_nobodys_row(faber, acme, alice, given):
    """Rows of invitees and of many-time invitations have none."""
    bob = acme.hosts("Bob")
    bob.accepts_invitation(acme.invites(multiParty=True)["invitation"])
    error = error_of(alice.accepts_invitation, settings.PUBLIC_URL + given)
    assert error.status == 400
    assert alice.get("/connections") == []


def test_a_link_may_end_with_a_slash(faber, alice):
    given = faber.invites()["invitationUrl"] + "/"
    assert alice.accepts_invitation(given)["state"] == "Connected"


@pytest.mark.parametrize("kind", ["", "/qr.svg"])
def test_a_link_that_was_taken_shows_nobody_what_it_held(faber, alice, client, kind):
    values = {"name": "Secret", "level": "7"}
    definition = faber.defines(*values)["definitionId"]
    body = {"definitionId": definition, "credentialValues": values}
    link = faber.post("/credentials", body)["offerUrl"].partition("?")[0]
    path = link.removeprefix(settings.PUBLIC_URL) + kind
    assert client.get(path, headers={"Accept": "application/json"}).status_code == 200
    alice.put_form("/credentials/fromData", credentialData=link)
    again = client.get(path, headers={"Accept": "application/json"})
    assert (again.status_code, again.json()["code"]) == (410, "invitation_used")


@pytest.mark.parametrize(
    "members",
    [
        {"recipientKeys": []},
        {"recipientKeys": [7]},
        {"recipientKeys": ["z" * 15_000]},
        {"recipientKeys": None, "did": "did:sov:x"},
        {"serviceEndpoint": 7},
        {"serviceEndpoint": {}},
        {"@type": "https://didcomm.org/out-of-band/1.1/invitation"},
        {"@id": "x" * 129},
        {"label": 1e999},
    ],
)
def test_an_invitation_with_a_wrong_member_is_400(faber, alice, members):
    body = Connection.objects.get(
        connection_id=faber.invites()["connectionId"]
    ).invitation
    error = error_of(alice.accepts_invitation, json.dumps(body | members))
    assert error.status == 400
    assert not Connection.objects.filter(role="invitee").exists()


def test_accepting_again_gives_the_same_connection(faber, alice):
    invited = faber.invites()
    first, again = (alice.accepts_invitation(invited["invitation"]) for _ in range(2))
    assert first == again


def test_an_invitation_that_another_wallet_used_is_409(faber, alice):
    invited = faber.invites()
    faber.hosts("Bob").accepts_invitation(invited["invitation"])
    error = error_of(alice.accepts_invitation, invited["invitation"])
    assert_error(error, 409, "invitation_used")
    assert alice.get("/connections/invitations") == []


def test_an_invitation_of_another_organization_connects_too(faber, acme):
    alice = acme.hosts("Alice")
    assert alice.meets(faber)["state"] == "Connected"
    assert faber.get(f"/connections/{alice.known_as(faber)}")["state"] == "Connected"


def landed(client, link, **headers):
    """Follow redirects. Return the query of the last address, and the response."""
    answer = client.get(link.removeprefix(settings.PUBLIC_URL), headers=headers)
    if answer.status_code == 302:
        link = answer["Location"]
        answer = client.get(link.removeprefix(settings.PUBLIC_URL), headers=headers)
    assert answer.status_code == 200
    return parse_qs(urlsplit(link).query), answer


@pytest.mark.parametrize(
    "headers", [{}, {"Accept": "*/*"}, {"Accept": "application/json, text/plain, */*"}]
)
def test_a_program_that_follows_an_invitation_finds_it_under_both_names(
    faber, client, headers
):
    """The vendor's wallet reads `d_m`, others `c_i`."""
    invited = faber.invites()
    query, answer = landed(client, invited["invitationUrl"], **headers)
    assert query == {"c_i": [invited["invitation"]], "d_m": [invited["invitation"]]}
    assert [*query] == ["c_i", "d_m"], "in this order"
    if "json" in headers.get("Accept", ""):
        assert answer.json() == message.decode_json(invited["invitation"])


def test_who_takes_only_json_gets_it_without_a_redirect(faber, client):
    invited = faber.invites()
    query, answer = landed(client, invited["invitationUrl"], Accept="application/json")
    assert (query, answer.json()) == ({}, message.decode_json(invited["invitation"]))


def test_an_offer_is_found_under_one_name(faber, client):
    values = {"name": "Ann", "level": "7"}
    definition = faber.defines(*values)["definitionId"]
    body = {"definitionId": definition, "credentialValues": values}
    offered = faber.post("/credentials", body)
    query, _ = landed(client, offered["offerUrl"])
    assert query == {"d_m": [offered["offerData"]]}


@pytest.mark.parametrize("protocol", ["connections", "out-of-band"])
def test_the_name_of_an_invitation_is_what_the_holder_sees(faber, alice, protocol):
    invited = faber.invites(name="Registry office", protocol=protocol)
    assert message.decode_json(invited["invitation"])["label"] == "Registry office"
    assert alice.accepts_invitation(invited["invitation"])["name"] == "Registry office"
    theirs = faber.get(f"/connections/{invited['connectionId']}")
    assert (theirs["state"], theirs["name"]) == ("Connected", "Registry office")


@pytest.mark.parametrize("body", [{}, {"name": ""}])
def test_without_one_each_sees_the_name_of_the_other(faber, alice, body):
    invited = faber.invites(**body)
    assert alice.accepts_invitation(invited["invitation"])["name"] == "Faber College"
    assert faber.get(f"/connections/{invited['connectionId']}")["name"] == "Alice"


@pytest.mark.parametrize(
    "protocol, query", [("connections", "c_i"), ("out-of-band", "oob")]
)
def test_an_invitee_sees_what_it_has_accepted(faber, alice, protocol, query):
    Tenant.objects.update(image_url="https://faber.example/logo.png")
    invited = faber.invites(protocol=protocol)
    mine = alice.accepts_invitation(invited["invitation"])
    assert mine["imageUrl"] == "https://faber.example/logo.png"
    assert mine["invitation"] == invited["invitation"]
    assert (
        mine["invitationUrl"]
        == f"{settings.PUBLIC_URL}/?{query}={invited['invitation']}"
    )
    assert alice.accepts_invitation(mine["invitationUrl"]) == mine
    assert alice.get("/connections") == [mine]
