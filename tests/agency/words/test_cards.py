"""What stands on a card, and where."""

import pytest
from django.template.loader import render_to_string
from django.utils import translation

from agency.words.cards import Card, place_entries, translate

NAMES = {"en": "Member card", "de-CH": "Mitgliederkarte", "ar": "بطاقة"}
HOSTILE = ["x" * 200, "\u202eevil", "<b>bold</b>", "🦄" * 60, "--></svg>"]


def placed(display, names, values=None):
    shown = {"name": "Card", "issuer": "Faber", "background": "#0b6b62"}
    return place_entries(display, names, values or {}, **shown)


def names_of(entries):
    return [entry.name for entry in entries]


@pytest.mark.parametrize(
    ("language", "text"),
    [("de", NAMES["de-CH"]), ("ar", NAMES["ar"]), ("fr", NAMES["en"])],
)
def test_a_reader_gets_the_own_language_or_english(language, text):
    with translation.override(language):
        assert translate(NAMES) == text
    assert translate({"it": "Tessera"}) == "Tessera" and translate({}) == ""


def test_without_a_design_the_first_ones_and_the_end_are_on_the_face():
    names = ["valid until", "name", "number", "level", "city"]
    card = placed({}, names)
    assert card.title.name == "name"
    assert names_of(card.face) == ["number", "level", "valid until"]
    assert names_of(card.back) == ["city"]
    assert placed({}, []).title is None


def test_each_attribute_stands_where_the_design_says():
    design = {"title": "b", "face": ["d"], "back": ["c"], "labels": {"d": {"en": "D!"}}}
    card = placed(design, ["a", "b", "c", "d"])
    assert card.title.name == "b" and card.face[0].label == "D!"
    assert names_of(card.face) == ["d"] and names_of(card.back) == ["c", "a"]
    bare = placed({"face": []}, ["a", "b"])
    assert (bare.title.name, bare.face, names_of(bare.back)) == ("a", [], ["b"])


def test_what_the_face_cuts_is_whole_on_the_back():
    for text in ("x" * 200, "Alexandra Montgomery-Smith"):
        assert names_of(placed({}, ["a"], {"a": text}).back) == ["a"]
    assert names_of(placed({}, ["a" * 40], {"a" * 40: "x"}).back) == ["a" * 40]
    assert placed({}, ["a"], {"a": "Alice Liddell"}).back == []


def test_text_is_black_or_white_by_its_contrast():
    assert Card("a", "b", background="#12355b").is_dark
    assert not Card("a", "b", background="#ffd84d").is_dark


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_text_gets_out_of_its_place(hostile):
    names = [f"{hostile}{number}" for number in range(40)]
    card = placed({}, names, dict.fromkeys(names, hostile))
    page = render_to_string("holders/links/card.html", {"card": card})
    assert "<b>" not in page and page.count("</svg>") == 1
    assert page.count("<bdi") == page.count("</bdi>") >= 2 + 2 * 40
