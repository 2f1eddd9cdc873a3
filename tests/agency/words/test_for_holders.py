"""Holders read one word for one thing: a card."""

import re

import pytest
from django.utils import translation

from agency.words import links, states
from tests.agency.test_translations import FOLDERS, TRANSLATED, catalog_of, file_of
from tests.support.paths import ROOT

# What experts call it, in each language that holders read.
CREDENTIAL = re.compile(
    r"credential|credencial|attestation|berechtigungsnachweis|اعتماد", re.I
)
TEMPLATES = [
    *(ROOT / "agency/holders").glob("*/templates/**/*.html"),
    *(ROOT / "agency/mails/templates").glob("**/*"),
]
TAGS = re.compile(r"{#.*?#}|{%.*?%}|{{.*?}}|<[^>]*>", re.S)


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("language", TRANSLATED)
def test_no_text_for_holders_speaks_of_credentials(folder, language):
    catalog = catalog_of(file_of(ROOT / folder, language, "mo"))
    for key, text in catalog.items():
        assert not CREDENTIAL.search(f"{key} {text}"), (key, text)


def test_no_page_of_holders_speaks_of_credentials():
    assert len(TEMPLATES) > 20
    for template in filter(lambda one: one.is_file(), TEMPLATES):
        assert not CREDENTIAL.search(TAGS.sub(" ", template.read_text())), template


def test_what_a_state_says_to_holders_is_about_a_card():
    with translation.override("en"):
        for table in states.TABLES.values():
            for words in table.values():
                told = f"{words.holder} {words.tag} {words.kiosk}"
                assert not CREDENTIAL.search(told), told
        for texts in links.TEXTS.values():
            for heading, next_step in texts.values():
                assert not CREDENTIAL.search(f"{heading} {next_step}")
