"""The sheet of a link, to print: one click from the page of its connection."""

import pytest

from connections.models import Connection
from tests.agency.holders.links.conftest import BROWSER, LinkPage

pytestmark = pytest.mark.django_db(transaction=True)


def sheet_of(url, language="en"):
    page = LinkPage(url)
    headers = BROWSER | {"Accept-Language": language}
    return page.client.get(f"{page.path}/sheet", headers=headers)


def test_it_has_the_code_the_sender_what_it_is_for_and_the_link(faber):
    invited = faber.invites(
        multiParty=True, protocol="out-of-band", goal="Join the library"
    )
    response = sheet_of(invited["invitationUrl"])
    page = response.text
    token = Connection.objects.get().token
    assert response.status_code == 200
    assert f'src="/i/{token}/qr.svg"' in page and f"/i/{token}</code>" in page
    for words in ("<bdi>Faber", "Join the library", "Scan this with your phone"):
        assert words in page, words
    assert "data-print" in page


def test_it_is_in_the_organizations_language_else_the_browsers(faber):
    url = faber.invites()["invitationUrl"]
    assert sheet_of(url, "fr")["Content-Language"] == "fr"
    faber.tenant.default_language = "ar"
    faber.tenant.save()
    response = sheet_of(url, "fr")
    assert response["Content-Language"] == "ar"
    assert 'dir="rtl"' in response.text


def test_of_an_offer_it_has_no_values(offer):
    page = sheet_of(offer()["offerUrl"]).text
    assert "offers you a card" in page and "4711" not in page


def test_a_link_that_was_used_or_never_was_has_none(faber):
    invited = faber.invites()
    faber.hosts("Alice").accepts_invitation(invited["invitation"])
    used = sheet_of(invited["invitationUrl"])
    assert used.status_code == 410 and "qr.svg" not in used.text
    assert sheet_of("http://localhost:8000/i/nothing").status_code == 404
