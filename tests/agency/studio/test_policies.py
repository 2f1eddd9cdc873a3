"""Policies and requests in the studio: what the pages make is what the API makes."""

import html
import json
import re
from unittest import mock
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.http import QueryDict
from django.utils import timezone

from agency.studio import policies
from agency.studio.conditions import condition_words
from agency.studio.policy_builder import as_text
from agency.studio.policy_drafts import next_version, read_draft
from agency.studio.policy_samples import example_value
from connections.models import Connection
from core.errors import Conflict
from core.work import transactions
from credentials.models import Credential
from tenants.models import AuditEntry
from tests.agency.studio.conftest import read
from tests.support.policies import attribute, policy, predicate
from tests.support.steps import step
from verifications.models import Verification, VerificationPolicy
from verifications.proofs.policy import PolicyItem

pytestmark = pytest.mark.django_db(transaction=True)
TODAY = object()
ITEMS = {
    "name": "Degree check", "version": "1.0", "item_0_name_0": "name",
    "item_0_kind": "show", "item_1_name_0": "year", "item_1_kind": ">=",
    "item_1_number": "2015",
}  # fmt: skip
VALUES = {"name": "Alice Smith", "year": "2020"}
# AND within a restriction, OR between them, groups, and what has no field.
VALID_AT = {"validAt": "2026-01-31T08:00:00.000000Z"}
RESTRICTIONS = [
    {"schemaName": "Degree", "schemaVersion": "1.0", "issuerDid": "did1"},
    {
        "schemaId": "did2:2:Badge:1.0",
        "schemaIssuerDid": "did2",
        "value": {"attributeName": "city", "attributeValue": " Bern "},
    },
    {"credentialDefinitionId": "did3:3:CL:1:default"},
    {"vct": "https://issuer.example/degree"},
]
EITHER = [
    {"issuerDid": "did1"},
    {"issuerDid": "did2", "provenBy": ["age_over_18", "age_over_21"]},
]
OLD = {"policyName": "old enough", "allowText": True, "restrictions": EITHER}
WHOLE = policy(
    attribute("name", "city, state", policyName="Who", restrictions=RESTRICTIONS),
    attribute("date", policyName="When", revocationRequirement=VALID_AT),
    name="Whole",
    version="2.1.0",
    predicates=[predicate("age", ">=", -5, **OLD)],
    revocationRequirement=VALID_AT,
)


def build(browser, url, **fields):
    answer = browser.send(f"{url}/policies/new", **ITEMS | fields)
    assert answer.status_code == 302, answer.text
    made = VerificationPolicy.objects.latest("pk")
    assert answer.url == f"{url}/policies/{made.pk}"
    return made


def test_the_fields_of_the_builder_are_the_items(browser, url, api, definition):
    chosen = definition.definition_id
    made = build(browser, url, item_0_any_0_definition=chosen, valid_now="on")
    [shown] = api.get("/verificationPolicies")
    items = [attribute("name", restrictions=[{"credentialDefinitionId": chosen}])]
    year = predicate("year", ">=", 2015, policyName="year >= 2015")
    wanted = policy(*items, name="Degree check", predicates=[year])
    now = {"revocationRequirement": {"validNow": True}}
    assert shown == shown | wanted | now | {"policyId": str(made.pk)}
    entry = AuditEntry.objects.get(action="policy.created")
    assert entry.object_id == str(made.pk)
    page = read(browser, f"{url}/policies/new?view=builder")
    for known in (chosen, definition.schema.schema_id, "year"):
        assert f'<option value="{known}">' in page


def test_the_grace_is_a_field(browser, url, api):
    made = build(browser, url, valid_now="on", grace="90")
    [shown] = api.get("/verificationPolicies")
    assert shown["revocationRequirement"] == {"validNow": True, "graceSeconds": 90}
    again = read(browser, f"{url}/policies/new?policy={made.pk}&view=builder")
    assert 'name="grace" value="90"' in again and 'name="requirement"' not in again
    answer = browser.send(f"{url}/policies/new", **ITEMS, valid_now="on", grace="9000")
    assert answer.status_code == 200 and 'value="9000"' in answer.text
    assert "3600" in answer.text and VerificationPolicy.objects.count() == 1


def test_the_page_says_in_words_what_is_asked(browser, url, definition):
    chosen = definition.definition_id
    made = build(
        browser,
        url,
        item_0_any_0_definition=chosen,
        item_1_any_0_definition="did3:3:CL:1:default",
    )
    page = read(browser, f"{url}/policies/{made.pk}")
    for words in (
        "<bdi>name</bdi></strong>: Show the value",
        f'<strong title="{chosen}"><bdi>Degree</bdi>',
        "Only prove: at least 2015",
        # A definition of somebody else is named by its id.
        "definition <code>did3:3:CL:1:default</code>",
    ):
        assert words in page


CONDITIONS = {
    (">=", "today"): "today or any later day",
    (">", "today+30d"): "later than 30 days from today",
    ("<=", "today-18y"): "18 years ago or earlier",
    ("<", "today-1m"): "earlier than 1 month ago",
    ("==", "today-0d"): "exactly today",
    ("<=", 20081123): "on 23 Nov 2008 or earlier",
    (">=", 18): "at least 18",
}


def test_a_definition_or_its_twin_is_a_box_of_the_builder(browser, url, definition):
    chosen = definition.definition_id
    made = build(browser, url, item_0_any_0_definition=chosen, item_0_any_0_twin="on")
    items = made.unsealed_body()["attributes"]
    named = {"credentialDefinitionId": chosen, "orTwin": True}
    assert items[0]["restrictions"] == [named]
    page = read(browser, f"{url}/policies/{made.pk}")
    assert "<bdi>Degree</bdi></strong> that you issued (or its twin)" in page
    again = read(browser, f"{url}/policies/new?policy={made.pk}&view=builder")
    assert 'name="item_0_any_0_twin" checked' in again


def test_a_condition_is_said_in_words():
    for (kind, number), words in CONDITIONS.items():
        item = PolicyItem("year", ("year",), kind, number)
        assert condition_words(item) == words


REFUSED = [
    ({"item_1_number": ""}, "predicates compare whole numbers only"),
    ({"item_1_number": "2147483648"}, "2147483647"),
    ({"item_1_name_0": "name", "item_1_kind": "show"}, "has the name"),
    ({"version": "first"}, "Write one to three numbers"),
    ({"item_0_name_0": "", "item_1_kind": ""}, "at least one attribute"),
]


def test_what_the_api_refuses_is_said_on_the_page(browser, url):
    for fields, sentence in REFUSED:
        answer = browser.send(f"{url}/policies/new", **ITEMS | fields)
        assert answer.status_code == 200 and sentence in answer.text
    assert not VerificationPolicy.objects.exists()


def press(browser, url, do, **fields):
    """The page after a button."""
    answer = browser.send(f"{url}/policies/new", do=do, **fields)
    assert answer.status_code == 200
    return answer.text


def fields_of(page):
    """The fields of a form as a browser sends them, by name."""
    found = {}
    for tag in re.findall(r"<input[^>]*>", page):
        name = re.search(r' name="([^"]*)"', tag)
        value = re.search(r' value="([^"]*)"', tag, re.S)
        is_off = "checkbox" in tag and " checked" not in tag
        if name and not is_off:
            text = html.unescape(value[1]) if value else "on"
            found.setdefault(name[1], []).append(text)
    for name, inner in re.findall(
        r'<select[^>]* name="([^"]*)"[^>]*>(.*?)</select>', page, re.S
    ):
        chosen = re.search(r'value="([^"]*)" selected', inner)
        found[name] = html.unescape(chosen[1]) if chosen else ""
    for name, text in re.findall(
        r'<textarea[^>]* name="([^"]*)"[^>]*>(.*?)</textarea>', page, re.S
    ):
        found[name] = html.unescape(text)
    found.pop("form_token"), found.pop("csrfmiddlewaretoken", None)
    return found


def test_buttons_change_the_draft_and_keep_what_was_written(browser, url):
    page = press(browser, url, "add_item", **ITEMS)
    assert 'name="item_2_name_0"' in page and 'name="item_3_name_0"' not in page
    assert 'value="2015"' in page and 'value="&gt;=" selected' in page
    assert " checked" not in page  # revocation, which was not ticked
    page = press(browser, url, "add_name:0", **fields_of(page))
    assert 'name="item_0_name_1"' in page
    page = press(browser, url, "add_any:1", **fields_of(page))
    assert 'name="item_1_any_0_issuer"' in page
    page = press(browser, url, "remove_any:1:0", **fields_of(page))
    assert 'name="item_1_any_0_issuer"' not in page
    page = press(browser, url, "remove_item:0", **fields_of(page))
    assert fields_of(page)["item_0_name_0"] == ["year"]
    assert not VerificationPolicy.objects.exists()


def test_a_button_that_is_not_there_changes_nothing(browser, url):
    for do in ("remove_item:99", "add_name:", "remove_any:0:9", "remove_any:0", "x"):
        page = press(browser, url, do, **ITEMS)
        assert fields_of(page)["item_1_number"] == ["2015"], do


def test_and_and_or_go_to_json_and_back_unchanged(browser, url, api):
    text = as_text(WHOLE)
    page = press(browser, url, "builder", view="json", policy=text)
    built = fields_of(page)
    assert built["item_0_any_1_value"] == [" Bern "]
    assert built["item_0_name_1"] == ["city, state"]
    page = press(browser, url, "json", **built)
    assert json.loads(fields_of(page)["policy"]) == WHOLE
    answer = browser.send(f"{url}/policies/new", do="save", **built)
    assert answer.status_code == 302
    [stored] = api.get("/verificationPolicies")
    other = api.post("/verificationPolicies", WHOLE)
    for made in (stored, other):
        del made["policyId"], made["createdAtUtc"], made["updatedAtUtc"]
    assert stored == other


NO_POLICIES = {
    "{": "not JSON",
    "[]": "not a JSON object",
    '{"name": "N"}': "version",
    as_text(WHOLE | {"predicates": [{"predicateType": "~"}]}): "predicates[0]",
}


def test_json_that_is_no_policy_stays_json(browser, url):
    for text, sentence in NO_POLICIES.items():
        for do in ("builder", "save", "json"):
            page = press(browser, url, do, view="json", policy=text)
            assert sentence in page and fields_of(page)["policy"] == text


def test_hidden_fields_that_no_page_sends_break_nothing(browser, url):
    for fields in (
        {"item_0_more": '{"a":' * 20_000 + "1" + "}" * 20_000},
        {"item_0_more": '{"policyName": "\\ud800"}'},
        {"requirement": '{"x": "\\ud800"}'},
        {"do": "remove_item:" + "9" * 5_000},
        {"do": "remove_sample:" + "9" * 5_000},
    ):
        given = ITEMS | {"do": "json"} | fields
        assert browser.send(f"{url}/policies/new", **given).status_code == 200


def test_a_policy_larger_than_the_builder_stays_json(browser, url):
    item = WHOLE["attributes"][0] | {"restrictions": [{"issuerDid": "x"}] * 9}
    text = as_text(WHOLE | {"attributes": [item]})
    page = press(browser, url, "builder", view="json", policy=text)
    assert "larger than the builder shows" in page
    assert fields_of(page)["policy"] == text


def test_the_holders_view_and_findings_are_shown(browser, url, api, definition):
    page = press(browser, url, "check", **ITEMS)
    assert "<bdi>year</bdi>: <bdi>at least 2015</bdi>" in page
    draft = read_draft(QueryDict(urlencode(ITEMS)))
    tried = api.post("/verificationPolicies/try", draft.body())
    assert tried["lint"]
    for finding in tried["lint"]:
        assert html.escape(finding["message"]) in page
    page = press(browser, url, "check", **ITEMS | {"item_1_number": "x"})
    assert "Complete the policy" in page


def test_a_policy_is_tried_on_samples(browser, url, definition):
    page = press(browser, url, "try", **ITEMS)
    chosen = fields_of(page) | {"sample_of": str(definition.pk)}
    sample = fields_of(press(browser, url, "add_sample", **chosen))
    assert sample["sample_0_name"] == ["name", "year"]
    assert sample["sample_0_value"] == ["Ada Lovelace", "42"]
    page = press(browser, url, "run", **sample | {"sample_0_value": ["Ann", "2020"]})
    assert "A wallet with these could answer" in page
    page = press(browser, url, "run", **sample | {"sample_0_value": ["Ann", "2000"]})
    assert "could not answer all of it" in page
    assert "The comparison does not hold." in page
    any_other = press(browser, url, "add_sample", **chosen | {"sample_of": ""})
    for part in ("sample_0_name", "sample_0_value"):
        assert fields_of(any_other)[part] == sample[part]


def test_samples_stay_while_the_policy_is_changed(browser, url, definition):
    page = press(browser, url, "try", **ITEMS)
    chosen = fields_of(page) | {"sample_of": str(definition.pk)}
    page = press(browser, url, "add_sample", **chosen)
    changed = fields_of(page) | {"sample_0_value": ["Ann", "1"]}
    page = press(browser, url, "builder", **changed)
    assert fields_of(page)["sample_0_value"] == ["Ann", "1"]
    page = press(browser, url, "try", **fields_of(page))
    page = press(browser, url, "remove_sample:0", **fields_of(page))
    assert "sample_0_called" not in fields_of(page)
    assert not VerificationPolicy.objects.exists()


EXAMPLES = {
    ("Full Name", ""): "Ada Lovelace", ("first_name", ""): "Ada",
    ("Family name", ""): "Lovelace", ("E-Mail", ""): "ada@example.org",
    ("level", "integer"): "42", ("admitted", "date"): TODAY,
    ("valid until", "integer"): TODAY, ("birthdate_dateint", ""): TODAY,
    ("city", ""): "city",
}  # fmt: skip


def test_an_example_fits_the_name_and_the_type():
    today = f"{timezone.now():%Y%m%d}"
    for (name, kind), example in EXAMPLES.items():
        assert example_value(name, kind) == (today if example is TODAY else example)


def test_a_new_version_stands_beside_the_old_one_and_a_copy(browser, url, api):
    made = build(browser, url)
    path = f"{url}/policies/new?policy={made.pk}"
    page = read(browser, path)
    assert 'value="1.1"' in page and 'value="2015"' in page
    build(browser, url, version="1.1", item_1_number="2016")
    newest, first = api.get("/verificationPolicies")
    assert (newest["version"], first["version"]) == ("1.1", "1.0")
    assert first["predicates"][0]["predicateValue"] == 2015
    copy = fields_of(read(browser, f"{path}&copy=yes"))
    assert (copy["name"], copy["version"]) == (["Degree check (copy)"], ["1.0"])


def test_the_next_version_counts_the_last_number():
    following = {"1.0": "1.1", "1": "2", "1.0.9": "1.0.10", "1.0.0-beta": "1.0.1"}
    assert {one: next_version(one) for one in following} == following


@step
def issued(faber, met, definition):
    """The credential of Alice, a degree, at its issuer."""
    met.receives(faber, {"definitionId": definition.definition_id}, VALUES)
    return Credential.objects.get(role="issuer")


@pytest.fixture
def alice(alice, issued):
    """The wallet of Alice, with a degree."""
    return alice


def test_asking_over_a_connection_is_answered_there(browser, url, api, alice):
    made = build(browser, url)
    assert "Ask over a connection" in read(browser, f"{url}/policies/{made.pk}")
    path = f"{url}/verifications/new?policy={made.pk}"
    form = read(browser, path)
    assert "Only prove: at least 2015" in form
    assert re.search(r'value="link"[^>]*checked', form) and "id_find" in form
    answer = browser.send(path, connection_id=alice.connection_id)
    asked = Verification.objects.get(role="verifier")
    assert answer.url == f"{url}/verifications/{asked.pk}"
    assert asked.policy_id == made.pk
    alice.auto_selects()
    assert api.get(f"/verifications/{asked.pk}")["isValid"] is True
    assert AuditEntry.objects.filter(action="verification.requested").count() == 1


def test_a_connection_that_is_gone_gets_no_link(browser, url, alice, monkeypatch):
    path = f"{url}/verifications/new?policy={build(browser, url).pk}"
    # It was deleted after the form had been checked.
    monkeypatch.setattr(policies, "find_in_scope", lambda *_: None)
    page = browser.send(path, connection_id=alice.connection_id).text
    assert f"There is no connection with the id {alice.connection_id} in" in page
    assert not Verification.objects.exists()


def test_saving_and_asking_over_an_unknown_connection_asks_nobody(browser, url, alice):
    path = f"{url}/policies/new?connection={uuid4()}"
    answer = browser.send(path, do="save_and_ask", **ITEMS)
    made = VerificationPolicy.objects.get()
    assert answer.url == f"{url}/policies/{made.pk}"
    assert "nobody was asked" in read(browser, answer.url)
    assert not Verification.objects.exists()


def test_after_a_verdict_the_next_one_is_asked_with_one_click(browser, url, alice):
    made = build(browser, url)
    path = f"{url}/verifications/new?policy={made.pk}"
    first = browser.send(path, connection_id=alice.connection_id).url
    assert "Check the next one" not in read(browser, first)
    alice.auto_selects()
    page = read(browser, first)
    before = page.partition("Check the next one")[0]
    form = r'<form method="post" action="([^"]+)"'
    [*_, action] = re.findall(form, before)
    assert action == path
    following = browser.send(action)
    assert "qr.svg" in read(browser, following.url)
    made.delete()
    assert "Check the next one" not in read(browser, first)


def test_saving_and_asking_is_one_button(browser, url, api, monkeypatch):
    answer = browser.send(f"{url}/policies/new", do="save_and_ask", **ITEMS)
    [asked] = api.get("/verifications")
    assert answer.url == f"{url}/verifications/{asked['verificationId']}"
    assert "qr.svg" in read(browser, answer.url)
    made = VerificationPolicy.objects.get()
    assert Verification.objects.get().policy_id == made.pk
    refusal = Conflict("quota_exceeded", "No more requests this month.")
    monkeypatch.setattr(policies, "send_request", mock.Mock(side_effect=refusal))
    second = ITEMS | {"version": "2.0"}
    answer = browser.send(f"{url}/policies/new", do="save_and_ask", **second)
    made = VerificationPolicy.objects.latest("pk")
    assert (answer.url, made.version) == (f"{url}/policies/{made.pk}", "2.0")
    assert "No more requests this month." in read(browser, answer.url)


def test_a_policy_is_asked_for_by_a_link_with_one_button(browser, url, api):
    made = build(browser, url)
    path = f"{url}/verifications/new?policy={made.pk}"
    for page in ("policies", f"policies/{made.pk}"):
        shown = read(browser, f"{url}/{page}")
        assert f'method="post" action="{path}"' in shown
    assert "over a connection" not in shown
    form = read(browser, path)
    assert "id_find" not in form and "QR code and a link" in form
    answer = browser.send(path)
    [asked] = api.get("/verifications")
    assert answer.url == f"{url}/verifications/{asked['verificationId']}"
    page = read(browser, answer.url)
    assert asked["verificationRequestUrl"] in page and "qr.svg" in page
    assert Verification.objects.get().connection.connectionless


def test_the_first_page_asks_for_the_policy_if_there_are_several(browser, url, api):
    path = f"{url}/verifications/new"
    assert browser.get(path).url == f"{url}/policies/new"
    assert "No policy yet" in read(browser, f"{path}?q=")
    made = build(browser, url)
    chosen = f"{path}?policy={made.pk}"
    assert browser.get(path).url == chosen
    build(browser, url, version="1.1")
    assert chosen.removeprefix(path) in read(browser, path)
    made.delete()
    assert browser.get(chosen).status_code == 404


def ask_about(browser, url, credential):
    assert "Ask for a proof" in read(browser, f"{url}/credentials/{credential.pk}")
    return browser.get(f"{url}/verifications/new?credential={credential.pk}").url


def test_a_credential_leads_to_a_policy_and_to_its_holder(browser, url, alice, issued):
    builder = ask_about(browser, url, issued)
    page = read(browser, builder)
    fields = fields_of(page)
    assert "Save and ask" in page and fields["name"] == ["Check of Degree"]
    saved = browser.send(builder, do="save_and_ask", **fields)
    asked = Verification.objects.get(role="verifier")
    assert saved.url == f"{url}/verifications/{asked.pk}"
    assert asked.policy_id == VerificationPolicy.objects.get().pk
    assert asked.connection.connection_id == alice.connection_id


def check(browser, url, credential):
    page = f"{url}/credentials/{credential.pk}"
    assert "Check this card now" in read(browser, page)
    answer = browser.send(f"{page}/check")
    asked = Verification.objects.filter(role="verifier").latest("pk")
    assert answer.url == f"{url}/verifications/{asked.pk}"
    return asked


def test_a_card_is_checked_with_one_button(browser, url, alice, issued):
    asked = check(browser, url, issued)
    assert asked.connection.connection_id == alice.connection_id
    made = VerificationPolicy.objects.get()
    assert (asked.policy_id, made.name) == (made.pk, "Check of Degree")
    alice.auto_selects()
    assert "The proof is valid" in read(browser, f"{url}/verifications/{asked.pk}")
    assert check(browser, url, issued).policy_id == made.pk
    assert VerificationPolicy.objects.count() == 1
    assert AuditEntry.objects.filter(action="verification.requested").count() == 2


def test_a_card_by_a_link_is_checked_by_one(browser, url, api, alice, definition):
    body = {"definitionId": definition.definition_id, "credentialValues": VALUES}
    made = api.post("/credentials", body | {"automaticIssuance": True})
    alice.put_form("/credentials/fromData", credentialData=made["offerData"])
    row = Credential.objects.get(pk=made["credentialId"])
    asked = check(browser, url, row)
    assert asked.connection.connectionless
    assert "qr.svg" in read(browser, f"{url}/verifications/{asked.pk}")
    VerificationPolicy.objects.all().delete()
    builder = ask_about(browser, url, row)
    fields = fields_of(read(browser, builder))
    saved = browser.send(builder, do="save_and_ask", **fields)
    assert "qr.svg" in read(browser, saved.url)


def test_a_card_whose_connection_ended_is_not_checked(browser, url, issued):
    for end in (Connection.end, Connection.remove):
        with transactions.atomic():
            end(issued.connection)
        answer = browser.send(f"{url}/credentials/{issued.pk}/check")
        assert "nobody was asked" in read(browser, answer.url)
    assert not Verification.objects.exists()


def test_a_credential_leads_to_the_choice(browser, url, issued, definition):
    made = build(browser, url)
    page = read(browser, ask_about(browser, url, issued))
    connection = f"connection={issued.connection_id}"
    assert f"?policy={made.pk}&amp;{connection}" in page
    assert f"/policies/new?{connection}&amp;definition={definition.pk}" in page


def test_the_only_policy_of_a_credential_is_not_chosen(browser, url, alice, issued):
    builder = ask_about(browser, url, issued)
    browser.send(builder, do="save", **fields_of(read(browser, builder)))
    made = VerificationPolicy.objects.get()
    choice = ask_about(browser, url, issued)
    page = browser.get(choice, follow=True).text
    assert f"/policies/{made.pk}" in page
    assert f'value="{alice.connection_id}" selected' in page
    other = re.search(r'href="(\?q=[^"]*)">Ask by another policy', page)[1]
    path = f"{url}/verifications/new{other}".replace("&amp;", "&")
    shown = read(browser, path)
    assert "By which policy?" in shown and "New policy" in shown


def test_of_one_policy_none_is_chosen_for_a_connection(browser, url, alice):
    made = build(browser, url)
    row = Connection.objects.get(connection_id=alice.connection_id)
    page = read(browser, f"{url}/connections/{row.pk}")
    for kind in ("credentials", "verifications"):
        assert f"{url}/{kind}/new?connection={row.pk}" in page
    path = f"{url}/verifications/new?connection={row.pk}"
    form = browser.get(path, follow=True).text
    assert f'value="{alice.connection_id}" selected' in form
    assert f"/policies/{made.pk}" in form


def test_only_own_issued_credentials_are_checked(browser, url, api, alice, definition):
    held = Credential.objects.get(role="holder")
    path = f"{url}/verifications/new?credential={held.pk}"
    assert browser.get(path).status_code == 404
    assert browser.send(f"{url}/credentials/{held.pk}/check").status_code == 404
    assert not VerificationPolicy.objects.exists()
    body = {"definitionId": definition.definition_id, "credentialValues": VALUES}
    offered = api.post("/credentials", body)["credentialId"]
    for pk in (held.pk, offered):
        assert "Ask for a proof" not in read(browser, f"{url}/credentials/{pk}")
