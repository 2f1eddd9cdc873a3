"""The languages of a page: which one is chosen, and what it says."""

import re

import pytest
from django.utils import translation

from agency.words.links import TEXTS
from tenants.branding import LANGUAGES
from tests.agency.holders.links.conftest import LinkPage, take_offer, text_of
from tests.support.policies import predicate

TRANSLATED = [language for language in LANGUAGES if language != "en"]
FIELD = re.compile(r"{\w*}")


def test_the_browser_chooses_then_the_organization(faber):
    page = LinkPage(faber.invites()["invitationUrl"])
    for accepted, default, language in (
        ("de", "", "de"),
        ("fr-CA,fr;q=0.9,en;q=0.8", "", "fr"),
        ("nl, es;q=0.4, ar;q=0.7", "de", "ar"),
        ("en-GB", "de", "en"),
        ("nl", "de", "de"),
        ("*", "es", "es"),
        ("", "", "en"),
        ("nl", "", "en"),
        ("x" * 5000, "fr", "fr"),
        ("de;q=x, ../../de", "", "en"),
    ):
        faber.tenant.default_language = default
        faber.tenant.save()
        response = page.open(**{"Accept-Language": accepted})
        assert response["Content-Language"] == language, accepted
        assert f'<html lang="{language}"' in response.text
        assert "Accept-Language" in response["Vary"]
        assert ('dir="rtl"' in response.text) is (language == "ar")
        assert translation.get_language() == "en"  # of this thread's next request


@pytest.mark.parametrize(
    "language, words, number, day",
    [
        ("de", "möchte Ihre Karte prüfen", "weniger als 2023", "22. November 2008"),
        ("fr", "demande à vérifier votre carte", "moins de 2023", "22 novembre 2008"),
        ("es", "pide comprobar su tarjeta", "menos de 2023", "22 de noviembre de 2008"),
        ("ar", "يطلب التحقق من بطاقتك", "أقل من 2023", "22 نوفمبر، 2008"),
    ],
)
def test_a_page_and_its_state_are_translated(faber, ask, language, words, number, day):
    items = [predicate("year", "<", 2023), predicate("birth date", "<", 20081122)]
    asked = ask(predicates=items)
    page = LinkPage(asked["verificationRequestUrl"])
    text = text_of(page.open(**{"Accept-Language": language}))
    for part in (words, number, day):
        assert part in text
    for english in ("wallet app", "Your", "this page", "Open", "Copy", "Done"):
        assert english not in text
    faber.delete(f"/verifications/{asked['verificationId']}")
    state = page.look(**{"Accept-Language": language})
    assert state["Content-Language"] == language
    assert "withdrawn" not in text_of(state)


@pytest.mark.parametrize("language", TRANSLATED)
def test_each_state_of_each_kind_has_its_words(language):
    for kind, states in TEXTS.items():
        for state, pair in states.items():
            for text in pair:
                with translation.override("en"):
                    english = str(text)
                with translation.override(language):
                    translated = str(text)
                assert translated != english, (kind, state)
                assert set(FIELD.findall(translated)) == set(FIELD.findall(english))


def test_done_is_said_in_the_readers_language(faber, offer):
    page = LinkPage((made := offer())["offerUrl"])
    page.open(**{"Accept-Language": "de"})
    take_offer(faber.hosts("Alice"), made["offerUrl"])
    response = page.look(**{"Accept-Language": "de"})
    assert "Die Karte ist in Ihrer Wallet" in text_of(response)
