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


@pytest.mark.parametrize("accept", ["*/*", None, "image/png, */*"])
def test_the_short_link_leads_wallets_to_the_long_one(
    client, invited, settings, accept
):
    headers = {} if accept is None else {"Accept": accept}
    response = client.get(path_of(invited, settings), headers=headers)
    assert response.status_code == 302
    data = invited["invitation"]
    assert response["Location"] == f"{invited['invitationUrl']}?c_i={data}&d_m={data}"


@pytest.mark.parametrize(
    "accept", [BROWSER["Accept"], "text/html", "application/json, TEXT/HTML"]
)
def test_a_browser_stays_at_the_short_link_of_an_offer(
    client,
    faber,
    settings,
    accept,
):
    values = {"name": "Balthazar-4711", "year": "1999"}
    definition = faber.defines(*values)["definitionId"]
    offer = faber.post(
        "/credentials", {"definitionId": definition, "credentialValues": values}
    )
    link = offer["offerUrl"].partition("?")[0]
    response = client.get(
        link.removeprefix(settings.PUBLIC_URL), headers={"Accept": accept}
    )
    assert response.status_code == 200
    assert "Faber College offers you a credential" in response.content.decode()
    moved = client.get(
        link.removeprefix(settings.PUBLIC_URL), headers={"Accept": "*/*"}
    )
    assert moved["Location"].startswith(f"{link}?d_m=")


def test_it_is_not_indexed_kept_or_told_on(client, invited, settings):
    response = open_invitation(client, invited, settings)
    assert response["X-Robots-Tag"] == "noindex"
    assert response["Referrer-Policy"] == "same-origin"
    assert "no-store" in response["Cache-Control"]
    assert "default-src 'self'" in response["Content-Security-Policy"]


def test_opening_it_uses_nothing_up(client, faber, invited, settings):
    alice = faber.hosts("Alice")
    for _ in range(3):
        assert open_invitation(client, invited, settings).status_code == 200
    assert alice.accepts_invitation(invited["invitation"])["state"] == "Connected"


def test_a_used_invitation_says_so_without_a_code(client, faber, invited, settings):
    faber.hosts("Alice").accepts_invitation(invited["invitation"])
    response = open_invitation(client, invited, settings)
    page = response.content.decode()
    assert response.status_code == 410
    assert "This invitation was used already" in page
    assert "qr.svg" not in page
    assert invited["invitation"] not in page


def test_an_invitation_for_many_stays_open(client, faber, settings):
    invited = faber.invites(multiParty=True)
    faber.hosts("Alice").accepts_invitation(invited["invitation"])
    assert open_invitation(client, invited, settings).status_code == 200


def test_an_unknown_invitation_gets_a_page_too(client, db):
    response = client.get("/i/unknown", headers=BROWSER)
    assert response.status_code == 404
    assert "This link is not known" in response.content.decode()


def test_a_wallet_gets_the_message(client, invited, settings):
    headers = {"Accept": "application/json"}
    body = client.get(path_of(invited, settings), headers=headers).json()
    assert body["label"] == "Faber College"


def test_a_name_cannot_write_the_page(client, transactional_db, settings):
    invited = Organization('<script>"x"</script>').invites()
    assert (
        "<script>&quot;"
        not in open_invitation(client, invited, settings).content.decode()
    )
    assert (
        '<script>"x"'
        not in open_invitation(client, invited, settings).content.decode()
    )
