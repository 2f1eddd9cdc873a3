"""A page names who offers or asks what. It never contains a value."""

import base64

import pytest
from django.utils import timezone
from django.utils.formats import date_format

from tests.agency.holders.links.conftest import (
    BROWSER,
    CONNECTING,
    POLICY,
    VALUES,
    LinkPage,
    answer,
    text_of,
)
from tests.support.policies import attribute, predicate
from verifications.wording import value_words

pytestmark = pytest.mark.django_db(transaction=True)


def page_of(made):
    url = made.get("offerUrl") or made.get("verificationRequestUrl")
    return LinkPage(url or made["invitationUrl"])


def values_in(response):
    """The values that the body or an address contains, also in base64."""
    body = response.text + response.get("Location", "")
    return [
        value
        for value in VALUES.values()
        for shift in range(3)
        if value in body
        or base64.b64encode(b"x" * shift + value.encode())[4:-4].decode() in body
    ]


def test_an_offer_names_the_credential_and_its_attributes(offer):
    text = text_of(page_of(offer()).open())
    assert "Faber College offers you a card" in text
    assert "Degree Full Name year" in text
    assert "127.0.0.1:8000" in text


def test_a_request_names_what_is_shown_and_what_is_proven_only(ask):
    text = text_of(page_of(ask()).open())
    assert "Faber College asks to check your card" in text
    assert "Your wallet shows Full Name" in text
    assert "Your wallet proves only" in text
    assert "year: less than 2023" in text


def test_a_condition_is_said_in_words(ask):
    for kind, threshold, name, words in (
        (">=", 18, "age", "age: at least 18"),
        (">", 17, "age", "age: more than 17"),
        ("<=", 3, "age", "age: at most 3"),
        ("<", -3, "age", "age: less than -3"),
        ("==", 7, "level", "level: exactly 7"),
        ("<=", 20081122, "birthdate_dateint", "on 22 Nov 2008 or earlier"),
        ("<", 20081122, "Birth Date", "Birth Date: before 22 Nov 2008"),
        (">=", 20081122, "date", "date: on 22 Nov 2008 or any later day"),
        (">", 20081122, "date", "date: after 22 Nov 2008"),
        ("==", 20081122, "date", "date: exactly on 22 Nov 2008"),
        (">=", 20081399, "date", "date: at least 20081399"),
        (">=", 20081122, "born", "born: on 22 Nov 2008 or any later day"),
        ("<=", 18991231, "number", "number: at most 18991231"),
        ("<=", 30000101, "number", "number: at most 30000101"),
        ("<=", 20230229, "number", "number: at most 20230229"),
    ):
        asked = ask(predicates=[predicate(name, kind, threshold)])
        text = text_of(page_of(asked).open())
        assert words in text
        assert text.count("values themselves are not shown") == 1
        # The bound of the library is not the verifier's.
        assert "2147483647" not in text


def test_a_day_that_is_today_is_called_so(ask):
    today = timezone.now().date()
    asked = predicate("validUntil", ">=", int(f"{today:%Y%m%d}"))
    link = page_of(ask(predicates=[asked]))
    day = date_format(today, "j M Y")
    words = f"Valid until: today ({day}) or any later day"
    assert words in text_of(link.open())
    assert "heute (" in text_of(link.open(**{"Accept-Language": "de"}))


DATES = {
    ("validUntil", "20270131"): "31 Jan 2027",
    ("Valid until", "20270131"): "31 Jan 2027",
    ("valid_until", "20270131"): "31 Jan 2027",
    ("birthdate_dateint", "20081122"): "22 Nov 2008",
    ("born", "19900503"): "3 May 1990", ("Member since", "20200131"): "31 Jan 2020",
}  # fmt: skip
TEXTS = ["20270132", "2027-01-31", "9" * 5000, ""]


def test_a_value_is_a_date_only_by_the_name_of_its_attribute():
    assert {pair: value_words(*pair) for pair in DATES} == DATES
    for name, text in (("born", "1990"), ("number", "20270131")):
        assert value_words(name, text) == text
    assert [value_words("validUntil", text) for text in TEXTS] == TEXTS


def test_a_required_value_is_shown_by_name(ask):
    required = {"attributeName": "status", "attributeValue": "Secret-1"}
    item = POLICY["predicates"][0] | {"restrictions": [{"value": required}]}
    response = page_of(ask(predicates=[item])).open()
    assert "Your wallet shows Full Name status" in text_of(response)
    assert "Secret-1" not in response.text


def test_many_names_are_folded(ask):
    attributes = [{"policyName": f"item {number}"} for number in range(15)]
    text = text_of(page_of(ask(attributes=attributes)).open())
    assert "item 11 3 more item 12 item 13 item 14" in text


def test_the_purpose_is_shown(faber, offer):
    goal = {"protocol": "out-of-band", "goal": "Your degree <for> good"}
    assert "Purpose: Your degree <for> good" in text_of(page_of(offer(**goal)).open())
    invited = faber.invites(**CONNECTING | {"goal": "To meet"})
    assert "Purpose: To meet" in text_of(page_of(invited).open())


def test_names_are_isolated_and_escaped(ask):
    attributes = [{"policyName": "<b>שם</b>"}]
    page = page_of(ask(attributes=attributes)).open().text
    assert "<bdi>&lt;b&gt;שם&lt;/b&gt;</bdi>" in page
    assert "<bdi>Faber College</bdi>" in page


def test_no_page_of_an_offer_contains_a_value(offer):
    for terms in ({}, {"protocol": "out-of-band"}, CONNECTING):
        page = page_of(offer(**terms))
        assert values_in(page.open()) == [], terms
        page.seen = ""
        assert values_in(page.look()) == [], terms


def test_values_reach_a_wallet_only(offer):
    page = page_of(offer())
    response = page.client.get(f"{page.path}/wallet", headers=BROWSER)
    assert response.status_code == 302
    assert response["Location"].startswith("didcomm://launch/?d_m=")
    assert response["Referrer-Policy"] == "no-referrer"
    assert "no-store" in response["Cache-Control"]
    assert values_in(response)  # so that the tests above can fail


def test_an_invitation_is_handed_over_whole(faber):
    faber.tenant.wallet_apps = [{"name": "Purse", "urls": ["https://purse.example"]}]
    faber.tenant.save()
    invited = faber.invites()
    page = page_of(invited).open().text
    assert f'href="didcomm://launch/?c_i={invited["invitation"]}' in page
    assert invited["invitation"] in page


def test_the_title_names_no_credential(offer, ask):
    for made in (offer(), ask()):
        page = page_of(made).open().text
        title = page.partition("<title>")[2].partition("</title>")[0]
        assert title.startswith("Faber College ")
        assert "Degree" not in title and "Full Name" not in title


DESIGN = {
    "names": {"en": "Member card", "de": "Mitgliedskarte"},
    "labels": {"born": {"en": "Date of birth", "de": "Geburtstag"}},
    "title": "name",
}


@pytest.fixture
def member(faber):
    return faber.defines("name", "born", "city", name="Member", display=DESIGN)


def of_cards(*made):
    return {
        "restrictions": [
            {"credentialDefinitionId": one["definitionId"]} for one in made
        ]
    }


def test_a_request_is_drawn_as_the_card_that_answers_it(ask, member, faber):
    asked = [attribute("born", **of_cards(member))]
    page = page_of(ask(attributes=asked, predicates=[]))
    shown = page.open(**{"Accept-Language": "de"})
    card = shown.text.partition('class="id-card')[2]
    assert "Mitgliedskarte" in card and "<bdi>Geburtstag</bdi>" in card
    # Only what is asked of it, and no value.
    assert ">city<" not in card and card.count('class="id-blank"') == 1
    # Of two cards that may answer, and of one elsewhere, there is a list.
    other = faber.defines("born", name="Student")
    elsewhere = {"definitionId": "elsewhere"}
    for made in ([member, other], [member, elsewhere], []):
        asked = [attribute("born", **of_cards(*made))]
        shown = page_of(ask(attributes=asked, predicates=[])).open()
        assert "id-card" not in shown.text and 'class="names"' in shown.text


def test_labels_are_those_of_the_issuer_in_the_readers_language(ask, member):
    only = of_cards(member)
    asked = {
        "attributes": [attribute("Born", **only), attribute("city")],
        "predicates": [predicate("born", "<", 20000101, **only)],
    }
    text = text_of(page_of(ask(**asked)).open(**{"Accept-Language": "de"}))
    assert text.count("Geburtstag") == 2 and "born" not in text.lower()


def test_the_page_that_saw_it_done_shows_the_card(alice, faber, ask, member):
    alice.receives(faber, member, {"name": "Ada", "born": "19990417", "city": "X"})
    made = ask(attributes=[attribute("name", **of_cards(member))], predicates=[])
    page = page_of(made)
    page.open()
    answer(alice, made["verificationRequestUrl"])
    done = page.look().text
    assert page.seen == "done" and "Member card" in done and "Ada" not in done
    # Whoever opens it later does not learn what it was about.
    later = page_of(made).open().text
    assert "Member card" not in later


def test_one_card_and_an_age_are_asked_in_one_sentence(faber, ask):
    names = {"en": "Member card", "de": "Mitgliedskarte", "ar": "بطاقة عضو"}
    claims = {"born": {"type": "date"}}
    made = faber.defines("name", "born", claims=claims, display={"names": names})
    only = {"restrictions": [{"credentialDefinitionId": made["definitionId"]}]}
    name, adult = (
        attribute("name", **only),
        predicate("born", "<=", "today-18y", **only),
    )
    for body, sentence in (
        ({"attributes": [name]}, "Show your \u2068Member card\u2069"),
        ({"attributes": [name], "predicates": [adult]}, "and that you are 18 or older"),
        ({"predicates": [adult]}, "Show that you are 18 or older"),
    ):
        asked = ask(**{"attributes": [], "predicates": []} | body)
        assert sentence in text_of(page_of(asked).open())
    for language, word in names.items():
        page = page_of(ask(attributes=[name], predicates=[]))
        shown = page.open(**{"Accept-Language": language})
        assert f"\u2068{word}\u2069" in text_of(shown)
    several = predicate("born", "<=", 20000101, **only)
    asked = ask(attributes=[name], predicates=[several])
    assert "asks to check your card" in text_of(page_of(asked).open())
