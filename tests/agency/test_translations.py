"""The translations in git are whole, and made from the texts of the code."""

import gettext
import re
import shutil

import pytest
from django.core.management import call_command
from django.utils import translation

from agency.words.reasons import SENTENCES
from connections.didcomm import reasons
from tenants.branding import LANGUAGES
from tests.support.paths import ROOT
from verifications.proofs.failures import CAUSES

FOLDERS = [
    "agency/words",
    "agency/holders/links",
    "agency/holders/wallet",
    "agency/mails",
    "verifications",
]
TRANSLATED = [language for language in LANGUAGES if language != "en"]
every_folder = pytest.mark.parametrize("folder", FOLDERS)


def catalog_of(path):
    """The texts of a .mo file, without its header."""
    with path.open("rb") as file:
        catalog = gettext.GNUTranslations(file)._catalog
    return {key: text for key, text in catalog.items() if key}


def file_of(folder, language, ending):
    return folder / "locale" / language / "LC_MESSAGES" / f"django.{ending}"


def count_texts(source):
    return len(re.findall(r"^msgid ", source, re.M))


@every_folder
@pytest.mark.parametrize("language", TRANSLATED)
def test_no_text_is_missing_or_fuzzy(folder, language):
    """Also without gettext: read from the files themselves."""
    place = ROOT / folder
    source = file_of(place, language, "po").read_text()
    assert "fuzzy" not in source
    assert 'msgstr ""\n\n' not in source and not source.endswith('msgstr ""\n')
    catalog = catalog_of(file_of(place, language, "mo"))
    assert all(catalog.values())
    keys = {key[0] if isinstance(key, tuple) else key for key in catalog}
    assert len(keys) == count_texts(source) - 1


@every_folder
@pytest.mark.parametrize("language", TRANSLATED)
def test_readers_get_them_and_not_what_another_app_says(folder, language):
    catalog = catalog_of(file_of(ROOT / folder, language, "mo"))
    texts = {key: text for key, text in catalog.items() if isinstance(key, str)}
    with translation.override(language):
        assert {key: translation.gettext(key) for key in texts} == texts


@pytest.mark.slow
@pytest.mark.needs("xgettext", "msgmerge", "msgfmt")
@every_folder
def test_both_files_are_those_of_the_source(folder, tmp_path, monkeypatch):
    """If it fails: cd <folder>, then for each language
    `django-admin makemessages -l de --no-location --no-obsolete`, translate what is
    new, and `django-admin compilemessages`.
    """
    place = ROOT / folder
    copy = shutil.copytree(place, tmp_path / folder)
    monkeypatch.chdir(copy)
    options = {"no_location": True, "no_obsolete": True, "verbosity": 0}
    call_command("makemessages", locale=TRANSLATED, **options)
    call_command("compilemessages", verbosity=0)
    for language in TRANSLATED:
        source = file_of(copy, language, "po").read_text()
        assert "fuzzy" not in source
        assert 'msgstr ""\n\n' not in source
        assert count_texts(source) == count_texts(
            file_of(place, language, "po").read_text()
        )
        assert catalog_of(file_of(copy, language, "mo")) == catalog_of(
            file_of(place, language, "mo")
        )


@pytest.mark.parametrize("language", TRANSLATED)
def test_reasons_are_translated_for_holders(language):
    catalog = catalog_of(file_of(ROOT / "agency/words", language, "mo"))
    assert {str(one) for one in SENTENCES} <= catalog.keys()
    assert set(reasons.DECLINES.values()) <= catalog.keys()
    assert {cause.message for cause in CAUSES} <= catalog.keys()
