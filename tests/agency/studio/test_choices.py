"""Choices of many: a search finds the connection, definition or policy to choose."""

import copy
import re

import pytest

from agency.studio.choices import MAX_CHOICES
from connections.models import Connection
from credentials.models import Credential
from tests.agency.studio.conftest import read
from tests.support.steps import step
from verifications.models import Verification, VerificationPolicy

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"value_0": "Alice Smith", "value_1": "2020"}
POLICY = {"name": "Name", "version": "1.0", "attributes": [{"policyName": "name"}]}


@step
def policy(faber):
    return faber.post("/verificationPolicies", POLICY)["policyId"]


@pytest.fixture
def alice(alice):
    """The connection with Alice."""
    return Connection.objects.get(connection_id=alice.connection_id)


@pytest.fixture
def forms(url, definition, policy):
    """The forms to issue and to ask."""
    return [
        f"{url}/credentials/new?definition={definition.pk}",
        f"{url}/verifications/new?policy={policy}",
    ]


def multiply(row, count, **fields):
    """Store copies of a row, and return them. fields: functions of their number."""
    rows = []
    for number in range(count):
        made = copy.copy(row)
        made.pk = row._meta.pk.get_default()
        for name, value in fields.items():
            setattr(made, name, value(number))
        rows.append(made)
    return type(row).objects.bulk_create(rows)


def crowd(alice, count, name="Person {}"):
    """Other connections that can be chosen, each newer than that of Alice."""
    keys = multiply(alice.my_key, count, verkey="key {}".format)
    multiply(
        alice,
        count,
        name=name.format,
        connection_id="id {}".format,
        their_key="peer {}".format,
        token=lambda number: "",
        my_key_id=lambda number: keys[number].pk,
        invitation_key_id=lambda number: None,
    )


def choices(response):
    """The labels of the recipients, without that of nobody."""
    assert response.status_code == 200, response.content
    inner = re.search(r'<select name="connection_id".*?</select>', response.text, re.S)
    return re.findall(r"<option[^>]*>([^<]*)</option>", inner[0])[1:]


def chosen(response):
    found = re.search(r'value="([^"]*)" selected', response.text)
    return found[1] if found else None


def press_find(browser, page, text, **fields):
    return browser.send(page, look="yes", find=text, **fields)


def nothing_is_sent():
    return not Credential.objects.exists() and not Verification.objects.exists()


def test_the_button_lists_what_is_found_and_judges_nothing(browser, alice, forms):
    crowd(alice, MAX_CHOICES)
    for page in forms:
        assert "Alice" not in choices(browser.get(page))
        shown = press_find(browser, page, "ali", value_0="Bo")
        assert choices(shown) == ["Alice"] and chosen(shown) == ""
        text = shown.text
        assert 'value="ali"' in text and "errorlist" not in text
        assert ('value="Bo"' in text) == (page == forms[0])
    assert nothing_is_sent()


def test_what_was_chosen_stays_a_choice(browser, alice, forms):
    issue_page, ask_page = forms
    crowd(alice, MAX_CHOICES)
    to = alice.connection_id
    shown = press_find(browser, issue_page, "Person 7", connection_id=to)
    assert choices(shown) == ["Alice", "Person 7"] and chosen(shown) == to
    assert choices(browser.get(f"{ask_page}&connection={alice.pk}"))[0] == "Alice"
    sent = browser.send(issue_page, connection_id=to, confirmed="yes", **VALUES)
    assert sent.status_code == 302
    assert Credential.objects.get(role="issuer").connection == alice
    browser.send(ask_page, connection_id=to)
    assert Verification.objects.get(role="verifier").connection == alice


def test_who_searched_and_chose_nobody_makes_no_link(browser, alice, forms):
    fields = VALUES | {"confirmed": "yes", "connection_id": ""}
    for page in forms:
        shown = browser.send(page, find="ali", **fields)
        assert choices(shown) == ["Alice"]
        refused = browser.send(page, to="connection", **fields)
        for answer in (shown, refused):
            assert 'id="id_find_error"' in answer.text
    assert nothing_is_sent()
    for page in forms:
        assert browser.send(page, find="ali", to="link", **fields).status_code == 302


def test_the_link_is_chosen_until_a_connection_is(browser, alice, forms):
    fields = VALUES | {"confirmed": "yes", "connection_id": alice.connection_id}
    for page in forms:
        to_alice = f"{page}&connection={alice.pk}"
        for path, way in ((page, "link"), (to_alice, "connection")):
            shown = read(browser, path)
            [checked] = re.findall(r'name="to" value="(\w+)"[^>]* checked', shown)
            assert checked == way
        browser.send(page, to="link", **fields)
    rows = [*Credential.objects.all(), *Verification.objects.all()]
    assert [row.connection.connectionless for row in rows] == [True, True]


def test_the_matches_follow_what_is_written(browser, url, alice):
    crowd(alice, MAX_CHOICES + 1)
    path = f"{url}/recipients"
    assert "<html" not in read(browser, path)
    assert choices(browser.get(f"{path}?find=ALI")) == ["Alice"]
    shown = browser.get(f"{path}?find=person")
    assert len(choices(shown)) == MAX_CHOICES
    assert "Write more of the name." in shown.text
    for text in (f"find={'a' * 201}", f"connection_id={'a' * 201}"):
        assert len(choices(browser.get(f"{path}?{text}"))) == MAX_CHOICES
    nobody = browser.get(f"{path}?find=nobody")
    assert choices(nobody) == [] and "Nothing matches." in nobody.text
    found = browser.get(f"{path}?find=x&connection_id={alice.connection_id}")
    assert chosen(found) == alice.connection_id


def test_connections_of_one_name_are_told_apart(browser, url, alice):
    crowd(alice, 1, name="Alice")
    shown = choices(browser.get(f"{url}/recipients"))
    assert shown == ["Alice (id 0)", f"Alice ({alice.connection_id})"]


def test_who_cannot_be_offered_anything_is_no_choice(browser, url, alice):
    path = f"{url}/recipients?find=ali&connection_id={alice.connection_id}"
    row = Connection.objects.filter(pk=alice.pk)
    for state, left_at in (("Invited", None), ("Connected", "2026-01-01T00:00Z")):
        row.update(state=state, left_at=left_at)
        assert choices(browser.get(path)) == []


def test_connections_of_others_are_no_choice(browser, url, alice, acme, forms):
    other = acme.hosts("Alina").known_as(acme)
    path = f"{url}/recipients?find=ali&connection_id={other}"
    assert choices(browser.get(path)) == ["Alice"]
    refused = browser.send(forms[0], connection_id=other, **VALUES)
    assert "Select a valid choice" in refused.text


def test_a_definition_is_found_by_its_name(browser, url, definition, alice):
    crowd_of_definitions(definition, MAX_CHOICES)
    for path in (f"{url}/credentials/bulk", f"{url}/credentials/new"):
        assert f"?definition={definition.pk}" not in read(browser, path)
        shown = read(browser, f"{path}?q=deg&connection={alice.pk}")
        assert f"?definition={definition.pk}" in shown and "Badge" not in shown
        assert "Nothing matches." in read(browser, f"{path}?q=x")
    assert f"&amp;connection={alice.pk}" in shown
    assert f'name="connection" value="{alice.pk}"' in shown


def test_a_policy_is_found_by_its_name(browser, url, policy):
    made = VerificationPolicy.objects.get()
    multiply(made, MAX_CHOICES, name="Check {}".format)
    for path in (f"{url}/verifications/new", f"{url}/kiosks/new"):
        assert f"?policy={made.pk}" not in read(browser, path)
        shown = read(browser, f"{path}?q=NAM")
        assert f"?policy={made.pk}" in shown and "Check" not in shown


def crowd_of_definitions(definition, count):
    schema = definition.schema
    multiply(schema, 1, schema_id="other:{}".format, name="Badge {}".format)
    badge = type(schema).objects.exclude(pk=schema.pk).get()
    named = {"definition_id": "badge:{}".format, "tag": "tag {}".format}
    multiply(definition, count, **named, schema_id=lambda number: badge.pk)
