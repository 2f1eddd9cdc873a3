"""The simple view of a policy: one card, and what is asked of each attribute."""

import json
import re

import pytest

from agency.studio.policy_builder import as_text
from credentials.models import CredentialDefinition
from tests.agency.studio.conftest import read
from tests.agency.studio.test_policies import fields_of, press
from tests.support.people import Organization
from tests.support.policies import attribute, policy, predicate
from tests.support.steps import step
from verifications.models import Verification, VerificationPolicy

pytestmark = pytest.mark.django_db(transaction=True)
CLAIMS = {"level": {"type": "integer"}, "valid until": {"type": "date"}}


@step
def card(faber):
    return define(faber, "Membership card")


def define(api, name, claims=CLAIMS, **options):
    names = ["name", "level", "valid until"]
    made = api.defines(*names, name=name, claims=claims, **options)
    return CredentialDefinition.objects.get(definition_id=made["definitionId"])


def open_page(browser, url, query=""):
    return read(browser, f"{url}/policies/new{query}")


def open_newest(browser, url):
    """The fields of the policy that was saved last."""
    made = VerificationPolicy.objects.latest("pk")
    return fields_of(open_page(browser, url, f"?policy={made.pk}"))


def save(browser, url, fields, **changes):
    answer = browser.send(f"{url}/policies/new", do="save", **fields | changes)
    assert answer.status_code == 302, answer.text
    return VerificationPolicy.objects.latest("pk").unsealed_body()


def only_of(card):
    return {"restrictions": [{"credentialDefinitionId": card.definition_id}]}


def test_it_opens_filled_in_for_the_only_definition(browser, url, card):
    page = open_page(browser, url)
    assert "<bdi>Membership card</bdi></strong> that <bdi>Faber College</bdi>" in page
    assert card.definition_id not in page and "Refuse cards" not in page
    assert re.search(
        "<bdi>valid until</bdi>: <bdi>today \\([^<]*\\) or any later day</bdi>", page
    )
    items = [attribute("name", "level", policyName="name, level", **only_of(card))]
    end = predicate("valid until", ">=", "today", policyName="valid until >= today")
    wanted = policy(*items, name="Check of Membership card")
    wanted |= {"predicates": [end | only_of(card)]}
    assert save(browser, url, fields_of(page)) == wanted


def test_a_card_that_can_be_cancelled_must_not_be(browser, url, api):
    define(api, "Pass", supportRevocation=True)
    fields = fields_of(open_page(browser, url))
    assert fields["valid_now"] == ["on"]
    for is_ticked in (True, False):
        if not is_ticked:
            del fields["valid_now"]
        saved = save(browser, url, fields, version=f"1.{is_ticked:d}")
        assert ("revocationRequirement" in saved) == is_ticked
        assert ("valid_now" in open_newest(browser, url)) == is_ticked


def test_its_twin_is_a_box_that_comes_back(browser, url, api, card):
    assert "its twin" not in open_page(browser, url)
    twin = CredentialDefinition.objects.filter(pk=define(api, "Twin").pk)
    twin.update(twin_of=card.definition_id)
    fields = fields_of(open_page(browser, url, f"?definition={card.pk}"))
    assert "or_twin" not in fields
    saved = save(browser, url, fields, or_twin="on")
    either = [{"credentialDefinitionId": card.definition_id, "orTwin": True}]
    items = saved["attributes"] + saved["predicates"]
    assert [one["restrictions"] for one in items] == [either, either]
    twin.update(twin_of="")  # the box stays where the policy says it
    again = open_newest(browser, url)
    assert (again["view"], again["or_twin"]) == (["card"], ["on"])
    assert save(browser, url, again)["attributes"] == saved["attributes"]
    del again["or_twin"]
    [item] = save(browser, url, again, version="3.0")["attributes"]
    assert item["restrictions"] == only_of(card)["restrictions"]


DATES = [
    ("today", "", ">=", "today"), ("days", "30", ">=", "today+30d"),
    ("years", "18", "<=", "today-18y"), (">=", "2026-01-31", ">=", 20260131),
    ("<=", "20260131", "<=", 20260131),
]  # fmt: skip


def test_a_date_is_compared_and_comes_back(browser, url, card):
    fields = fields_of(open_page(browser, url)) | {"option_0": "", "option_1": ""}
    for number, (option, value, kind, compared) in enumerate(DATES):
        asked = {"name": f"{number}", "option_2": option, "value_2": value}
        saved = save(browser, url, fields, **asked)
        [found] = saved["predicates"]
        assert (found["predicateType"], found["predicateValue"]) == (kind, compared)
        assert not saved["attributes"]
        again = open_newest(browser, url)
        assert (again["view"], again["version"]) == (["card"], ["1.1"])
        assert (again["option_2"], again["option_0"]) == (option, "")
        assert again["value_2"][0].replace("-", "") == value.replace("-", "")
        assert save(browser, url, again) == saved | {"version": "1.1"}


MISSING = [
    ({"option_1": ">=", "value_1": "ten"}, "level</bdi>: Give a whole number."),
    ({"option_2": "years", "value_2": ""}, "valid until</bdi>: Give a number up to"),
    ({"option_2": "<=", "value_2": "2026-02-30"}, "Give a day such as"),
    (
        dict.fromkeys(("option_0", "option_1", "option_2"), ""),
        "at least one attribute",
    ),
    ({"option_0": ">=", "option_1": "", "option_2": ""}, "Ask for at least one"),
    ({"name": " "}, "name"),
]


def test_what_is_missing_is_said_on_the_page(browser, url, card):
    filled = fields_of(open_page(browser, url))
    for fields, sentence in MISSING:
        page = press(browser, url, "save", **filled | fields)
        assert sentence in page.split('role="alert"')[1]
        checked = press(browser, url, "check", **filled | fields)
        assert 'role="alert"' not in checked
    assert not VerificationPolicy.objects.exists()


def test_no_text_is_compared_and_an_end_as_a_number_is_a_date(browser, url, api):
    define(api, "Card", claims={})
    page = open_page(browser, url)
    assert "Only prove" not in page and fields_of(page)["option_2"] == "show"
    claims = dict.fromkeys(("valid until", "level"), {"type": "integer"})
    number = define(api, "Other", claims=claims)
    fields = fields_of(open_page(browser, url, f"?definition={number.pk}"))
    assert (fields["option_1"], fields["option_2"]) == ("show", "today")


def test_of_several_definitions_one_is_chosen_by_name(browser, url, api, card):
    other = define(api, "Guest card")
    page = open_page(browser, url)
    for one in (card, other):
        assert f'href="?definition={one.pk}"' in page
    assert "Guest card" not in open_page(browser, url, "?q=member")
    page = open_page(browser, url, f"?definition={other.pk}")
    assert fields_of(page)["card"] == [str(other.pk)]


def test_all_views_show_the_same_policy(browser, url, card):
    fields = fields_of(open_page(browser, url)) | {"option_1": ">=", "value_1": "3"}
    first = fields
    for view in ("builder", "json", "card", "try", "card"):
        fields = fields_of(press(browser, url, view, **fields))
        assert fields["view"] == [view]
    for name in first.keys() - {"view"}:
        text = first[name]
        is_given = isinstance(text, list) or "option" in name
        assert fields[name] == (text if is_given else [text]), name


OTHERS = [
    ({"restrictions": [{"issuerDid": "did1"}]}, "other conditions"),
    ({"restrictions": []}, "one kind of card only"),
    ({"restrictions": [{"credentialDefinitionId": "did1"}]}, "do not issue"),
    ({"policyName": "Who"}, "a name or an order"),
    ({"attributeNames": ["name", "age"]}, "the card does not have it"),
    ({"revocationRequirement": {"validAt": "2026-01-31T08:00:00Z"}}, "conditions"),
]


def test_what_the_view_cannot_show_stays_and_is_said(browser, url, card):
    item = attribute("name", **only_of(card))
    for number, (change, reason) in enumerate(OTHERS):
        body = policy(item | change, name=f"{number}")
        text = as_text(body)
        page = press(browser, url, "card", view="json", policy=text)
        assert reason in page.split('role="alert"')[1]
        assert json.loads(fields_of(page)["policy"]) == body
        save(browser, url, {"view": "json", "policy": text})
        assert open_newest(browser, url)["view"] == ["builder"]


COMPARISONS = [
    ([("level", ">", 3)], "compares level"),
    ([("valid until", "<=", "today-6m")], "compares valid until"),
    ([("valid until", ">=", "today-6d")], "compares valid until"),
    ([("valid until", ">=", 5)], "compares valid until"),
    ([("level", ">=", 3), ("level", "<=", 5)], "asks for level twice"),
    ([("valid until", ">=", "today"), ("level", ">=", 3)], "an order of its own"),
]


def test_comparisons_that_it_does_not_have_stay_json(browser, url, card):
    for predicates, reason in COMPARISONS:
        items = [
            predicate(*one, policyName=" ".join(map(str, one)), **only_of(card))
            for one in predicates
        ]
        body = {"name": "Other", "version": "1.0", "predicates": items}
        page = press(browser, url, "card", view="json", policy=as_text(body))
        assert reason in page.split('role="alert"')[1]


def test_items_of_several_cards_are_no_single_card(browser, url, card):
    items = [attribute(name, **only_of(card)) for name in ("name", "level")]
    page = press(browser, url, "card", view="json", policy=as_text(policy(*items)))
    assert "may come from several cards" in page


def test_a_card_of_somebody_else_is_not_found(browser, url, stored_keys):
    page = open_page(browser, url)  # there is no card
    assert fields_of(page)["view"] == ["builder"]
    other = Organization("Acme").defines("name", "age")
    row = CredentialDefinition.objects.get(definition_id=other["definitionId"])
    fields = {"view": "card", "card": row.pk, "name": "Theirs", "version": "1.0"}
    for given in (fields, fields | {"card": "x"}):
        answer = browser.send(f"{url}/policies/new", do="save", **given)
        assert answer.status_code == 404


def test_a_form_is_saved_once_and_looked_at_often(browser, url, card):
    page = open_page(browser, url)
    token = page.split('name="form_token" value="')[1].split('"')[0]
    fields = fields_of(page) | {"form_token": token}
    for do in ("check", "check", "save", "save"):
        browser.post(f"{url}/policies/new", fields | {"do": do})
    assert VerificationPolicy.objects.count() == 1


def test_the_page_of_a_definition_leads_to_asking_for_it(browser, url, card):
    page = browser.get(f"{url}/definitions/{card.pk}").text
    path = f"{url}/verifications/new?definition={card.pk}"
    assert f'href="{path}"' in page
    new = browser.get(path).url
    assert new == f"{url}/policies/new?definition={card.pk}"
    answer = browser.send(new, do="save_and_ask", **fields_of(open_page(browser, url)))
    assert answer.url == f"{url}/verifications/{Verification.objects.get().pk}"
    made = VerificationPolicy.objects.get()
    assert browser.get(path).url == f"{url}/verifications/new?policy={made.pk}"
    shown = browser.get(f"{url}/policies/{made.pk}").text
    assert "<bdi>Membership card</bdi></strong> that you issued" in shown
    assert "Only prove: today or any later day" in shown
    assert shown.count(card.definition_id) == 1
