"""The page of an invitation: one link for people, scanners and wallets."""

import io
import json
from urllib.parse import urlsplit

import pytest
from PIL import Image

from tenants.models import Tenant
from tests.support.people import Organization

pytestmark = pytest.mark.django_db(transaction=True)
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def invited(faber):
    return faber.get(f"/connections/{faber.invites()['connectionId']}")


def picture(content):
    """The grey levels of a PNG, row by row."""
    found = Image.open(io.BytesIO(content), formats=["PNG"])
    assert found.mode == "1"  # black and white: a hundredth of what colors take
    grey = found.convert("L")
    return memoryview(grey.tobytes()).cast("B", (grey.height, grey.width))


def open_invitation(client, invited):
    data = {"c_i": invited["invitation"]}
    return client.get(invited["invitationUrl"], data, headers=BROWSER)


def test_it_says_who_invites_and_offers_each_way(client, invited):
    app = {"name": "Purse", "urls": ["https://purse.example"]}
    Tenant.objects.update(wallet_apps=[app])
    response = open_invitation(client, invited)
    link, data = invited["invitationUrl"], invited["invitation"]
    page = response.text
    assert "Faber College invites you to connect" in page
    assert f'href="didcomm://launch/?c_i={data}' in page
    assert f'src="{urlsplit(link).path}/qr.svg"' in page
    assert link in page and data in page
    assert response.context["json"].startswith("{")
    assert json.loads(response.context["json"])["label"] == "Faber College"
    assert response["X-Robots-Tag"] == "noindex"
    assert client.get("/i/unknown", headers=BROWSER).status_code == 404


def test_the_short_link_leads_wallets_to_the_long_one(client, invited):
    link, data = invited["invitationUrl"], invited["invitation"]
    for headers in ({}, {"Accept": "*/*"}, {"Accept": "image/png, */*"}):
        response = client.get(link, headers=headers)
        assert response.status_code == 302
        assert response["Location"] == f"{link}?c_i={data}&d_m={data}"
    message = client.get(link, headers={"Accept": "application/json"})
    assert message.json()["label"] == "Faber College"


def test_a_browser_stays_at_the_short_link_of_an_offer(client, faber):
    values = {"name": "Balthazar-4711", "year": "1999"}
    body = {"definitionId": faber.defines(*values)["definitionId"]}
    offer = faber.post("/credentials", body | {"credentialValues": values})
    link = offer["offerUrl"].partition("?")[0]
    for accept in (BROWSER["Accept"], "text/html", "application/json, TEXT/HTML"):
        response = client.get(link, headers={"Accept": accept})
        assert response.status_code == 200
        assert "Faber College offers you a card" in response.text
    moved = client.get(link, headers={"Accept": "*/*"})
    assert moved["Location"].startswith(f"{link}?d_m=")


def test_a_used_invitation_says_so_without_a_code(client, faber, invited):
    many = faber.invites(multiParty=True)
    faber.hosts("Bob").accepts_invitation(many["invitation"])
    assert open_invitation(client, many).status_code == 200
    for _ in range(3):  # opening it uses nothing up
        assert open_invitation(client, invited).status_code == 200
    mine = faber.hosts("Alice").accepts_invitation(invited["invitation"])
    assert mine["state"] == "Connected"
    response = open_invitation(client, invited)
    page = response.text
    assert response.status_code == 410
    assert "This invitation was used already" in page
    assert "qr.svg" not in page
    assert invited["invitation"] not in page


def test_a_name_cannot_write_the_page(client, transactional_db):
    invited = Organization('<script>"x"</script>').invites()
    page = open_invitation(client, invited).text
    assert "<script>&quot;" not in page and '<script>"x"' not in page
