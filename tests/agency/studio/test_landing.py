"""The page of an invitation: one link for people, scanners and wallets."""

import json

import png
import pytest

from tests.support.people import Organization

pytestmark = pytest.mark.django_db(transaction=True)
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def invited(faber):
    return faber.get(f"/connections/{faber.invites()['connectionId']}")


def picture(content):
    """The grey levels of a PNG, row by row."""
    width, height, rows, info = png.Reader(bytes=content).asDirect()
    assert info["planes"] == 1
    scale = 255 // (2 ** info["bitdepth"] - 1)
    grey = bytes(level * scale for row in rows for level in row)
    return memoryview(grey).cast("B", (height, width))


def path_of(invited, settings):
    return invited["invitationUrl"].removeprefix(settings.PUBLIC_URL)


def open_invitation(client, invited, settings):
    path = path_of(invited, settings)
    return client.get(path, {"c_i": invited["invitation"]}, headers=BROWSER)


def test_it_says_who_invites_and_offers_each_way(client, invited, settings):
    response = open_invitation(client, invited, settings)
    page, data = response.content.decode(), invited["invitation"]
    assert "Faber College invites you to connect" in page
    assert f'href="didcomm://launch/?c_i={data}' in page
    assert f'src="{path_of(invited, settings)}/qr.svg"' in page
    assert invited["invitationUrl"] in page
    assert data in page
    assert response.context["json"].startswith("{")
    assert json.loads(response.context["json"])["label"] == "Faber College"
    assert response["X-Robots-Tag"] == "noindex"
    assert client.get("/i/unknown", headers=BROWSER).status_code == 404


def test_the_short_link_leads_wallets_to_the_long_one(client, invited, settings):
    path, data = path_of(invited, settings), invited["invitation"]
    for headers in ({}, {"Accept": "*/*"}, {"Accept": "image/png, */*"}):
        response = client.get(path, headers=headers)
        assert response.status_code == 302
        long = f"{invited['invitationUrl']}?c_i={data}&d_m={data}"
        assert response["Location"] == long
    message = client.get(path, headers={"Accept": "application/json"})
    assert message.json()["label"] == "Faber College"


def test_a_browser_stays_at_the_short_link_of_an_offer(client, faber, settings):
    values = {"name": "Balthazar-4711", "year": "1999"}
    body = {"definitionId": faber.defines(*values)["definitionId"]}
    offer = faber.post("/credentials", body | {"credentialValues": values})
    link = offer["offerUrl"].partition("?")[0]
    path = link.removeprefix(settings.PUBLIC_URL)
    for accept in (BROWSER["Accept"], "text/html", "application/json, TEXT/HTML"):
        response = client.get(path, headers={"Accept": accept})
        assert response.status_code == 200
        assert "Faber College offers you a credential" in response.content.decode()
    moved = client.get(path, headers={"Accept": "*/*"})
    assert moved["Location"].startswith(f"{link}?d_m=")


def test_opening_it_uses_nothing_up(client, faber, invited, settings):
    alice = faber.hosts("Alice")
    for _ in range(3):
        assert open_invitation(client, invited, settings).status_code == 200
    assert alice.accepts_invitation(invited["invitation"])["state"] == "Connected"


def test_a_used_invitation_says_so_without_a_code(client, faber, invited, settings):
    many = faber.invites(multiParty=True)
    faber.hosts("Bob").accepts_invitation(many["invitation"])
    assert open_invitation(client, many, settings).status_code == 200
    faber.hosts("Alice").accepts_invitation(invited["invitation"])
    response = open_invitation(client, invited, settings)
    page = response.content.decode()
    assert response.status_code == 410
    assert "This invitation was used already" in page
    assert "qr.svg" not in page
    assert invited["invitation"] not in page


def test_a_name_cannot_write_the_page(client, transactional_db, settings):
    invited = Organization('<script>"x"</script>').invites()
    page = open_invitation(client, invited, settings).content.decode()
    assert "<script>&quot;" not in page and '<script>"x"' not in page
