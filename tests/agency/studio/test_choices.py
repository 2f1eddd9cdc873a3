"""Choices of many: a search finds the connection, definition or policy to choose."""

import copy
import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agency.studio.choices import MAX_CHOICES
from connections.models import Connection
from credentials.models import Credential, CredentialDefinition
from tests.support.people import Api, Holder
from verifications.models import Verification, VerificationPolicy

pytestmark = pytest.mark.django_db(transaction=True)
MANY = 3000
VALUES = {"value_0": "Alice Smith", "value_1": "2020"}
POLICY = {"name": "Name", "version": "1.0", "attributes": [{"policyName": "name"}]}


@pytest.fixture
def api(college, stored_keys):
    return Api(college.access_token, college.subscription_key)


@pytest.fixture
def definition(api):
    schema = {"name": "Degree", "version": "1.0", "attributes": ["name", "year"]}
    api.post("/definitions/credentials", schema)
    return CredentialDefinition.objects.get()


@pytest.fixture
def policy(api):
    return api.post("/verificationPolicies", POLICY)["policyId"]


@pytest.fixture
def alice(api):
    holder = Holder(api, api.post("/api/wallets", {"ownerName": "Alice"})["walletId"])
    invited = api.post("/connections", {"name": "Alice"})
    holder.accepts_invitation(invited["invitation"])
    return Connection.objects.get(connection_id=invited["connectionId"])


@pytest.fixture
def issue_page(url, definition):
    return f"{url}/credentials/new?definition={definition.pk}"


@pytest.fixture
def ask_page(url, policy):
    return f"{url}/verifications/new?policy={policy}"


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


def crowd(alice, count=MANY, name="Person {}"):
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
    inner = re.search(
        r'<select name="connection_id".*?</select>', response.content.decode(), re.S
    )
    return re.findall(r"<option[^>]*>([^<]*)</option>", inner[0])[1:]


def chosen(response):
    found = re.search(r'value="([^"]*)" selected', response.content.decode())
    return found[1] if found else None


def press_find(browser, page, text, **fields):
    return browser.send(page, look="yes", find=text, **fields)


@pytest.mark.parametrize("page_name", ["issue_page", "ask_page"])
def test_the_button_lists_what_is_found_and_judges_nothing(
    browser, alice, page_name, request
):
    page = request.getfixturevalue(page_name)
    crowd(alice, MAX_CHOICES)
    assert "Alice" not in choices(browser.get(page))
    shown = press_find(browser, page, "ali", value_0="Bo")
    assert choices(shown) == ["Alice"] and chosen(shown) == ""
    assert 'value="ali"' in shown.content.decode()
    assert "errorlist" not in shown.content.decode()
    if page_name == "issue_page":
        assert 'value="Bo"' in shown.content.decode()
    assert not Credential.objects.exists() and not Verification.objects.exists()


def test_what_was_chosen_stays_a_choice(browser, alice, issue_page, ask_page):
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


@pytest.mark.parametrize("page_name", ["issue_page", "ask_page"])
def test_who_searched_and_chose_nobody_makes_no_link(
    browser, alice, page_name, request
):
    page = request.getfixturevalue(page_name)
    fields = VALUES | {"confirmed": "yes", "connection_id": ""}
    shown = browser.send(page, find="ali", **fields)
    assert 'id="id_find_error"' in shown.content.decode()
    assert choices(shown) == ["Alice"]
    assert not Credential.objects.exists() and not Verification.objects.exists()
    refused = browser.send(page, to="connection", **fields)
    assert 'id="id_find_error"' in refused.content.decode()
    assert not Credential.objects.exists() and not Verification.objects.exists()
    assert browser.send(page, find="ali", to="link", **fields).status_code == 302


@pytest.mark.parametrize("page_name", ["issue_page", "ask_page"])
def test_the_link_is_chosen_until_a_connection_is(browser, alice, page_name, request):
    page = request.getfixturevalue(page_name)
    for path, way in ((page, "link"), (f"{page}&connection={alice.pk}", "connection")):
        shown = browser.get(path).content.decode()
        [checked] = re.findall(r'name="to" value="(\w+)"[^>]* checked', shown)
        assert checked == way
    fields = VALUES | {"confirmed": "yes", "connection_id": alice.connection_id}
    browser.send(page, to="link", **fields)
    for row in (*Credential.objects.all(), *Verification.objects.all()):
        assert row.connection.connectionless


def test_the_matches_follow_what_is_written(browser, url, alice):
    crowd(alice, MAX_CHOICES + 1)
    path = f"{url}/recipients"
    assert "<html" not in browser.get(path).content.decode()
    assert choices(browser.get(f"{path}?find=ALI")) == ["Alice"]
    shown = browser.get(f"{path}?find=person")
    assert len(choices(shown)) == MAX_CHOICES
    assert "Write more of the name." in shown.content.decode()
    for text in (f"find={'a' * 201}", f"connection_id={'a' * 201}"):
        assert len(choices(browser.get(f"{path}?{text}"))) == MAX_CHOICES
    nobody = browser.get(f"{path}?find=nobody")
    assert choices(nobody) == [] and "Nothing matches." in nobody.content.decode()
    found = browser.get(f"{path}?find=x&connection_id={alice.connection_id}")
    assert chosen(found) == alice.connection_id


def test_connections_of_one_name_are_told_apart(browser, url, alice):
    crowd(alice, 1, name="Alice")
    shown = choices(browser.get(f"{url}/recipients"))
    assert shown == ["Alice (id 0)", f"Alice ({alice.connection_id})"]


@pytest.mark.parametrize(
    "changes", [{"state": "Invited"}, {"left_at": "2026-01-01T00:00Z"}]
)
def test_who_cannot_be_offered_anything_is_no_choice(browser, url, alice, changes):
    Connection.objects.filter(pk=alice.pk).update(**changes)
    path = f"{url}/recipients?find=ali&connection_id={alice.connection_id}"
    assert choices(browser.get(path)) == []


def test_another_organizations_connections_are_no_choice(
    browser, url, alice, faber, issue_page
):
    other = faber.hosts("Alina").known_as(faber)
    path = f"{url}/recipients?find=ali&connection_id={other}"
    assert choices(browser.get(path)) == ["Alice"]
    refused = browser.send(issue_page, connection_id=other, **VALUES)
    assert "Select a valid choice" in refused.content.decode()


@pytest.mark.parametrize("page", ["credentials/new", "credentials/bulk"])
def test_a_definition_is_found_by_its_name(browser, url, definition, alice, page):
    crowd_of_definitions(definition, MAX_CHOICES)
    path = f"{url}/{page}"
    assert f"?definition={definition.pk}" not in browser.get(path).content.decode()
    shown = browser.get(f"{path}?q=deg&connection={alice.pk}").content.decode()
    assert f"?definition={definition.pk}" in shown and "Badge" not in shown
    if page == "credentials/new":
        assert f"&amp;connection={alice.pk}" in shown
        assert f'name="connection" value="{alice.pk}"' in shown
    assert "Nothing matches." in browser.get(f"{path}?q=x").content.decode()


@pytest.mark.parametrize("page", ["verifications/new", "kiosks/new"])
def test_a_policy_is_found_by_its_name(browser, url, policy, page):
    made = VerificationPolicy.objects.get()
    multiply(made, MAX_CHOICES, name="Check {}".format)
    path = f"{url}/{page}"
    assert f"?policy={made.pk}" not in browser.get(path).content.decode()
    shown = browser.get(f"{path}?q=NAM").content.decode()
    assert f"?policy={made.pk}" in shown and "Check" not in shown


def crowd_of_definitions(definition, count):
    schema = definition.schema
    multiply(schema, 1, schema_id="other:{}".format, name="Badge {}".format)
    badge = type(schema).objects.exclude(pk=schema.pk).get()
    multiply(
        definition,
        count,
        definition_id="badge:{}".format,
        tag="tag {}".format,
        schema_id=lambda number: badge.pk,
    )


def test_as_many_statements_however_much_there_is(
    browser, url, alice, definition, issue_page, ask_page
):
    paths = [
        f"{issue_page}&connection={alice.pk}",
        f"{ask_page}&connection={alice.pk}",
        f"{url}/recipients?find=a",
        *(
            f"{url}/{page}?q={text}"
            for page in ("credentials/new", "credentials/bulk", "kiosks/new")
            for text in ("", "n")
        ),
    ]
    few = [count_statements(browser, path) for path in paths]
    crowd(alice)
    crowd_of_definitions(definition, MANY)
    multiply(VerificationPolicy.objects.get(), MANY, name="Number {}".format)
    assert [count_statements(browser, path) for path in paths] == few
    for path in paths:
        page = browser.get(path).content.decode()
        assert page.count("<option") <= MAX_CHOICES + 2
        assert page.count('<li><a href="?') <= MAX_CHOICES


def count_statements(browser, path):
    with CaptureQueriesContext(connection) as captured:
        assert browser.get(path).status_code == 200, path
    return len(captured)
