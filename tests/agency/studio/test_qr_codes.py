"""QR codes, decoded again: their content and size, and whether wallets accept it."""

import base64
import json
from urllib.parse import parse_qs, urlsplit

import pytest
import zxingcpp
from django.test import Client

from connections.api import qr_codes
from connections.models import Connection
from tenants.models import Tenant
from tests.agency.studio.test_landing import picture
from tests.support.people import Provider

pytestmark = pytest.mark.django_db(transaction=True)
OUT_OF_BAND = {"protocol": "out-of-band"}


def scanned(invited):
    """The text in the code of an invitation, and the version of the code."""
    path = urlsplit(invited["invitationUrl"]).path
    answer = Client().get(f"{path}/qr.png")
    assert answer.status_code == 200
    # Of that kind only: among so many modules there may be bars of another by chance
    [code] = zxingcpp.read_barcodes(
        picture(answer.content), zxingcpp.BarcodeFormat.QRCode
    )
    svg = Client().get(f"{path}/qr.svg")
    assert svg.status_code == 200 and b"<svg" in svg.content
    row = Connection.objects.get(connection_id=invited["connectionId"])
    return code.text, qr_codes.code_of(row).version


def carried(text, name="c_i"):
    [data] = parse_qs(urlsplit(text).query)[name]
    assert data == data.translate({ord("+"): "?", ord("/"): "?", ord("="): "?"})
    return json.loads(base64.b64decode(data))


@pytest.fixture
def public(settings):
    settings.PUBLIC_URL = "https://agency.example"


def test_the_code_of_an_invitation_is_small(public, faber):
    invited = faber.invites()
    text, version = scanned(invited)
    assert text.startswith(f"{invited['invitationUrl']}?c_i=")
    assert version <= 12
    whole = json.loads(base64.b64decode(invited["invitation"]))
    assert carried(text) == {
        name: whole[name]
        for name in ("@type", "@id", "label", "recipientKeys", "serviceEndpoint")
    }


def test_a_wallet_connects_by_what_it_scanned(faber):
    alice = faber.hosts("Alice")
    for body in ({}, OUT_OF_BAND, {"multiParty": True}):
        invited = faber.invites(**body)
        text, _ = scanned(invited)
        data = parse_qs(urlsplit(text).query)
        [invitation] = data.get("c_i") or data["oob"]
        mine = alice.accepts_invitation(invitation)
        assert (mine["state"], mine["name"]) == ("Connected", "Faber College")
        if not body:  # scanned and clicked it is the same invitation
            again = alice.accepts_invitation(invited["invitation"])
            assert again["connectionId"] == mine["connectionId"]


def test_a_picture_is_in_the_code_where_it_stays_small(public, faber):
    for address, is_kept in (("https://x.io/1", True), ("https://x.io/" * 9, False)):
        Tenant.objects.update(image_url=address, name="F")
        text, version = scanned(faber.invites())
        assert ("imageUrl" in carried(text)) is is_kept
        assert version <= 12


def test_an_invitation_with_any_goal_has_a_code(public, faber):
    for goal in ("To issue a dog licence", "ü" * 200):
        invited = faber.invites(**OUT_OF_BAND, goal=goal, goalCode="g" * 100)
        text, version = scanned(invited)
        assert version <= 20
        assert "goal" not in carried(text, "oob")
        assert text.startswith(f"{invited['invitationUrl']}?oob=")


def test_past_version_20_the_code_holds_the_short_link(faber):
    Tenant.objects.update(name="Ü" * 200)
    invited = faber.invites()
    text, version = scanned(invited)
    assert text == invited["invitationUrl"] and version <= 5


def test_an_organization_may_choose_the_short_link(faber):
    provider = Provider(faber)
    made = provider.makes(shortQrCodes=True)
    assert made["shortQrCodes"] is True
    office = provider.opens(made)
    invited = office.post("/connections", {})
    text, version = scanned(invited)
    assert text == invited["invitationUrl"] and version <= 5
    provider.put(f"/tenants/{made['tenantId']}", {"shortQrCodes": False})
    assert provider.get(f"/tenants/{made['tenantId']}")["shortQrCodes"] is False
    assert "?c_i=" in scanned(invited)[0]
    provider.put(f"/tenants/{made['tenantId']}", {"name": "Office"})
    assert provider.get(f"/tenants/{made['tenantId']}")["shortQrCodes"] is False


def test_an_offer_has_the_short_link(faber):
    values = {"name": "Alice", "year": "1999"}
    definition = faber.defines(*values)["definitionId"]
    body = {"definitionId": definition, "credentialValues": values}
    offer = faber.post("/credentials", body)["offerUrl"]
    row = Connection.objects.get(connectionless=True)
    shown = {"invitationUrl": offer, "connectionId": row.connection_id}
    assert scanned(shown)[0] == offer
