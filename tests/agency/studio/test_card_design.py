"""How cards look is chosen in a form beside the card."""

import re
from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from credentials.models import CredentialDefinition, PublishedObject
from tenants.models import Asset, AuditEntry
from tests.agency.studio.conftest import read
from tests.support.pictures import picture, storage
from tests.support.steps import step

__all__ = ["storage"]
pytestmark = pytest.mark.django_db(transaction=True)
CHOSEN = {
    "background": "#ffd84d", "language": "de", "name_en": "Member card",
    "name_de": "Mitgliedskarte", "side_0": "back", "side_1": "title",
    "label_1_de": "Jahr",
}  # fmt: skip


@step
def definition(faber):
    faber.defines("name", "year", display={"names": {"it": "Tessera"}})
    return CredentialDefinition.objects.get()


@pytest.fixture
def page(api, url, definition):
    return f"{url}/definitions/{definition.pk}/design"


def test_what_is_saved_is_what_the_api_says(browser, page, api):
    assert "Change how it looks" in read(browser, page.removesuffix("/design"))
    before = list(PublishedObject.objects.values())
    answer = browser.post(page, CHOSEN)
    assert answer.status_code == 302, answer.text
    [shown] = api.get("/definitions/credentials")
    assert shown["display"] == {
        "colors": {"background": "#ffd84d", "text": "#000000"},
        "names": {"en": "Member card", "de": "Mitgliedskarte", "it": "Tessera"},
        "labels": {"year": {"de": "Jahr"}},
        "title": "year", "face": [], "back": ["name"],
    }  # fmt: skip
    assert list(PublishedObject.objects.values()) == before
    assert AuditEntry.objects.get(action="definition.designed")
    again = read(browser, page)
    assert 'value="Mitgliedskarte"' in again and 'value="#ffd84d"' in again


def test_looking_saves_nothing_and_speaks_the_language(browser, page, api):
    for button, is_part in (("look", False), ("live", True)):
        shown = unescape(browser.post(page, CHOSEN | {button: "yes"}).text)
        card = shown.partition('class="id-card')[2]
        assert "Mitgliedskarte" in card and "Jahr" in card and "#ffd84d" in card
        assert "bietet Ihnen eine Karte an" in shown and 'lang="de" dir="ltr"' in shown
        assert ("<form" not in shown) is is_part
    [kept] = api.get("/definitions/credentials")
    assert kept["display"] == {"names": {"it": "Tessera"}}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"side_0": "title"}, "Choose one attribute as the title."),
        ({"background": "#fff;}"}, "Enter a valid value."),
        ({"name_en": "x" * 201}, "at most 200 characters"),
    ],
)
def test_what_cannot_be_is_said(browser, page, wrong, sentence):
    shown = browser.post(page, CHOSEN | wrong)
    assert shown.status_code == 200 and sentence in unescape(shown.text)
    assert re.search('class="id-card', shown.text)


def upload(data):
    return {"upload": SimpleUploadedFile("beach.png", data, "image/png")}


def test_a_picture_is_stored_when_it_is_chosen_and_kept_with_the_form(
    browser, page, api
):
    answer = browser.post(page, CHOSEN | upload(picture()) | {"live": "yes"})
    [stored] = Asset.objects.all()
    shown = unescape(answer.text)
    assert f'class="id-picture" src="/assets/{stored.name}" alt=""' in shown
    assert 'hx-swap-oob="true"' in shown
    assert "picture" not in api.get("/definitions/credentials")[0]["display"]
    # Whoever types on sends its address.
    kept = {"picture": stored.address}
    typed = unescape(browser.post(page, CHOSEN | kept | {"live": "yes"}).text)
    assert stored.name in typed and "hx-swap-oob" not in typed
    assert browser.post(page, CHOSEN | kept).status_code == 302
    [made] = api.get("/definitions/credentials")
    assert made["display"]["picture"] == stored.address
    assert stored.name in read(browser, page.removesuffix("/design"))
    assert Asset.objects.count() == 1
    without = browser.post(page, CHOSEN | kept | {"look": "without"}).text
    assert stored.name not in without
    assert browser.post(page, CHOSEN).status_code == 302
    assert "picture" not in api.get("/definitions/credentials")[0]["display"]


def test_a_file_sent_with_save_is_stored_once_for_all(browser, page, api):
    assert browser.post(page, CHOSEN | upload(picture())).status_code == 302
    [made] = api.get("/definitions/credentials")
    assert made["display"]["picture"] == Asset.objects.get().address


def test_what_is_no_picture_of_ours_is_refused_beside_its_field(browser, page, api):
    refused = unescape(browser.post(page, CHOSEN | upload(b"<svg/>")).text)
    assert "This is not a picture that can be read." in refused
    other = {"picture": "https://faber.example/assets/a.png"}
    assert "Choose the picture again." in browser.post(page, CHOSEN | other).text
    assert not Asset.objects.exists()
    assert api.get("/definitions/credentials")[0]["display"] == {
        "names": {"it": "Tessera"}
    }
