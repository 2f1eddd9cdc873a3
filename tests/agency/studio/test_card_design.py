"""How cards look is chosen in a form beside the card."""

import re
from html import unescape

import pytest

from credentials.models import CredentialDefinition, PublishedObject
from tenants.models import AuditEntry
from tests.agency.studio.conftest import read

pytestmark = pytest.mark.django_db(transaction=True)
CHOSEN = {
    "background": "#ffd84d", "language": "de", "name_en": "Member card",
    "name_de": "Mitgliedskarte", "side_0": "back", "side_1": "title",
    "label_1_de": "Jahr",
}  # fmt: skip


@pytest.fixture
def page(api, url):
    made = api.defines("name", "year", display={"names": {"it": "Tessera"}})
    found = CredentialDefinition.objects.get(definition_id=made["definitionId"])
    return f"{url}/definitions/{found.pk}/design"


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
