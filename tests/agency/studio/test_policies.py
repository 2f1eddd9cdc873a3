"""Policies and requests in the studio: what the pages make is what the API makes."""

import pytest

from agency.studio.policy_forms import next_version, rows_of_policy
from connections.models import Connection
from credentials.models import CredentialDefinition
from tenants.models import AuditEntry
from tests.support.people import Api, Holder
from verifications.models import Verification, VerificationPolicy

pytestmark = pytest.mark.django_db(transaction=True)
NAME = {"name": "Degree check", "version": "1.0", "rows": "2"}
ROWS = NAME | {
    "attribute_0": "name",
    "kind_0": "show",
    "attribute_1": "year",
    "kind_1": ">=",
    "number_1": "2015",
}


@pytest.fixture
def api(college, stored_keys):
    return Api(college.access_token, college.subscription_key)


@pytest.fixture
def definition(api):
    body = {"name": "Degree", "version": "1.0", "attributes": ["name", "year"]}
    api.post(
        "/definitions/credentials", body | {"claims": {"year": {"type": "integer"}}}
    )
    return CredentialDefinition.objects.get()


def build(browser, url, **fields):
    answer = browser.send(f"{url}/policies/new", **ROWS | fields)
    assert answer.status_code == 302, answer.content.decode()
    made = VerificationPolicy.objects.latest("pk")
    assert answer.url == f"{url}/policies/{made.pk}"
    return made


def test_the_rows_of_the_builder_are_the_items(browser, url, api, definition):
    chosen = definition.definition_id
    made = build(browser, url, definition_0=chosen, valid_now="on")
    [shown] = api.get("/verificationPolicies")
    assert shown == {
        "policyId": str(made.pk),
        "name": "Degree check",
        "version": "1.0",
        "attributes": [
            {
                "policyName": "name",
                "attributeNames": ["name"],
                "restrictions": [{"credentialDefinitionId": chosen}],
            }
        ],
        "predicates": [
            {
                "policyName": "year >= 2015",
                "attributeName": "year",
                "predicateType": ">=",
                "predicateValue": 2015,
            }
        ],
        "revocationRequirement": {"validNow": True},
    }
    entry = AuditEntry.objects.get(action="policy.created")
    assert entry.object_id == str(made.pk)


def test_the_page_says_in_words_what_is_asked(browser, url, definition):
    made = build(browser, url, definition_0=definition.definition_id)
    page = browser.get(f"{url}/policies/{made.pk}").content.decode()
    assert "<bdi>name</bdi></strong>: Show the value" in page
    assert definition.definition_id in page
    assert "Only prove: at least 2015" in page


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"number_1": ""}, "Give a whole number to compare with."),
        ({"number_1": "2147483648"}, "2147483647"),
        ({"attribute_1": "name", "kind_1": "show"}, "has the name"),
        ({"version": "first"}, "Write one to three numbers"),
        ({"attribute_0": "", "kind_1": ""}, "at least one attribute"),
    ],
)
def test_what_the_api_refuses_is_said_on_the_page(browser, url, fields, sentence):
    answer = browser.send(f"{url}/policies/new", **ROWS | fields)
    assert answer.status_code == 200 and sentence in answer.content.decode()
    assert not VerificationPolicy.objects.exists()


def test_more_rows_keep_what_was_written(browser, url):
    page = browser.send(f"{url}/policies/new", **ROWS, more_rows="yes")
    shown = page.content.decode()
    assert 'name="attribute_4"' in shown and 'name="attribute_5"' not in shown
    assert 'value="2015"' in shown and 'value="&gt;=" selected' in shown
    assert " checked" not in shown  # revocation, which was not ticked
    assert not VerificationPolicy.objects.exists()


def test_a_definition_fills_the_rows(browser, url, definition):
    path = f"{url}/policies/new?definition={definition.pk}"
    page = browser.get(path).content.decode()
    assert 'value="year"' in page and "Degree check" in page
    assert page.count(f'value="{definition.definition_id}"') == 3  # and the suggestion


def test_a_new_version_stands_beside_the_old_one(browser, url, api):
    made = build(browser, url)
    page = browser.get(f"{url}/policies/new?policy={made.pk}").content.decode()
    assert 'value="1.1"' in page and 'value="2015"' in page
    build(browser, url, version="1.1", number_1="2016")
    newest, first = api.get("/verificationPolicies")
    assert (newest["version"], first["version"]) == ("1.1", "1.0")
    assert first["predicates"][0]["predicateValue"] == 2015


@pytest.mark.parametrize(
    ("version", "following"),
    [("1.0", "1.1"), ("1", "2"), ("1.0.9", "1.0.10"), ("1.0.0-beta", "1.0.1")],
)
def test_the_next_version_counts_the_last_number(version, following):
    assert next_version(version) == following


def test_what_rows_cannot_say_is_changed_by_api(browser, url, api):
    items = [
        {"policyName": "both", "attributeNames": ["name", "year"]},
        {"policyName": "x", "restrictions": [{"schemaName": "A", "issuerDid": "B"}]},
        {
            "policyName": "x",
            "restrictions": [{"schemaName": "A"}, {"schemaName": "B"}],
        },
    ]
    for item in items:
        policy = {"name": "N", "version": "1.0", "attributes": [item]}
        made = api.post("/verificationPolicies", policy)
        page = browser.get(f"{url}/policies/{made['policyId']}").content.decode()
        assert "New version" not in page and "change it with the API" in page


def test_rows_make_the_policy_that_they_were_read_from(browser, url):
    made = build(browser, url, valid_now="on")
    rows = rows_of_policy(made.unsealed_body())
    assert rows == [
        {"attribute": "name", "definition": "", "kind": "show"},
        {"attribute": "year", "definition": "", "kind": ">=", "number": 2015},
    ]


@pytest.fixture
def alice(api, definition):
    """The wallet of Alice, with a degree."""
    wallet = api.post("/api/wallets", {"ownerName": "Alice"})
    holder = Holder(api, wallet["walletId"])
    invited = api.post("/connections", {"name": "Alice"})
    holder.accepts_invitation(invited["invitation"])
    holder.connection_id = invited["connectionId"]
    offer = {
        "definitionId": definition.definition_id,
        "connectionId": holder.connection_id,
        "credentialValues": {"name": "Alice Smith", "year": "2020"},
        "automaticIssuance": True,
    }
    api.post("/credentials", offer)
    holder.accepts_offer()
    return holder


def test_asking_over_a_connection_is_answered_there(browser, url, api, alice):
    made = build(browser, url)
    path = f"{url}/verifications/new?policy={made.pk}"
    page = browser.get(path).content.decode()
    assert "Only prove: at least 2015" in page
    answer = browser.send(path, connection_id=alice.connection_id)
    asked = Verification.objects.get(role="verifier")
    assert answer.url == f"{url}/verifications/{asked.pk}"
    assert asked.policy_id == made.pk
    alice.auto_selects()
    assert api.get(f"/verifications/{asked.pk}")["isValid"] is True
    assert AuditEntry.objects.filter(action="verification.requested").count() == 1


def test_asking_by_link_shows_its_qr_code(browser, url, api):
    made = build(browser, url)
    path = f"{url}/verifications/new?policy={made.pk}"
    answer = browser.send(path, connection_id="")
    [asked] = api.get("/verifications")
    page = browser.get(answer.url).content.decode()
    assert asked["verificationRequestUrl"] in page and "qr.svg" in page


def test_the_first_page_asks_for_the_policy(browser, url, api):
    path = f"{url}/verifications/new"
    assert "No policy yet" in browser.get(path).content.decode()
    made = build(browser, url)
    chosen = f"?policy={made.pk}"
    assert chosen in browser.get(path).content.decode()
    made.delete()
    assert browser.get(path + chosen).status_code == 404


def test_a_connection_leads_to_both_pages(browser, url, api, alice):
    row = Connection.objects.get(connection_id=alice.connection_id)
    page = browser.get(f"{url}/connections/{row.pk}").content.decode()
    for kind in ("credentials", "verifications"):
        assert f"{url}/{kind}/new?connection={row.pk}" in page


def test_who_may_only_look_has_no_button(viewer, browser, url):
    made = build(browser, url)
    for path in ("policies", f"policies/{made.pk}", "verifications"):
        page = viewer.get(f"{url}/{path}").content.decode()
        assert "/new" not in page.partition("<main")[2], path
