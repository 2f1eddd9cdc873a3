"""Definitions in the studio: what the pages make is what the API makes."""

import re
from unittest import mock

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from agency.studio.definition_forms import propose_recipient
from core.errors import Unavailable
from credentials.models import CredentialDefinition, Publication
from tenants.models import AuditEntry
from tests.agency.studio.conftest import read
from tests.support.people import Organization
from wallets import key_queue

pytestmark = pytest.mark.django_db(transaction=True)
DEGREE = {
    "name": "Degree", "version": "1.0", "rows": "3", "attribute_0": "name",
    "attribute_1": "year",
}  # fmt: skip


def define(browser, url, **fields):
    answer = browser.send(f"{url}/definitions/new", **DEGREE | fields)
    assert answer.status_code == 302, answer.text
    made = CredentialDefinition.objects.latest("pk")
    assert answer.url == f"{url}/definitions/{made.pk}"
    return made, read(browser, answer.url)


def test_the_rows_of_the_form_are_the_attributes(browser, url, api):
    made, page = define(
        browser, url, type_1="integer", support_revocation="on", tag="x"
    )
    [shown] = api.get("/definitions/credentials")
    assert shown.pop("createdAtUtc") <= shown.pop("updatedAtUtc")
    assert shown == {
        "definitionId": made.definition_id, "schemaId": made.schema.schema_id,
        "name": "Degree", "version": "1.0", "attributes": ["name", "year"],
        "supportsRevocation": True, "tag": "x",
        "claims": {"year": {"type": "integer"}}, "formats": ["anoncreds"],
        "recipientAttribute": "name",
    }  # fmt: skip
    assert made.definition_id in page and "0 of 15 places are used" in page
    entry = AuditEntry.objects.get(action="definition.created")
    assert (entry.actor_name, entry.object_id) == ("fay@faber.example", str(made.pk))


def test_a_tick_adds_the_day_on_which_it_ends(browser, url, api):
    for row in ({}, {"attribute_2": "validUntil", "name": "Other", "version": ""}):
        _, page = define(browser, url, valid_until="on", **row)
        shown = api.get("/definitions/credentials")[0]
        assert shown["attributes"] == ["name", "year", "valid until"]
        assert shown["claims"] == {"valid until": {"type": "date"}}
        assert shown["version"] == "1.0", "also by default"
        assert '<bdi>valid until</bdi> <span class="badge">Date</span>' in page


def test_it_can_lead_on_to_the_first_credential(browser, url, api):
    page = read(browser, f"{url}/definitions/new")
    tick = page.partition('name="support_revocation"')[2]
    assert "downloads a file, of 4 kB at first" in tick.partition("<details")[0]
    primary = re.findall(r'<button class="button"([^>]*)>([^<]*)', page)
    assert primary == [(' name="next" value="issue"', "Create and issue")]
    answer = browser.send(f"{url}/definitions/new", **DEGREE, next="issue")
    made = CredentialDefinition.objects.get()
    assert answer.url == f"{url}/credentials/new?definition={made.pk}"
    assert "Issue <bdi>Degree</bdi>" in read(browser, answer.url)


def test_an_error_opens_what_is_folded_and_more_rows_make_nothing(browser, url, api):
    page = read(browser, f"{url}/definitions/new")
    assert "<details open>" not in page
    fields = DEGREE | {"tag": "a/b"}
    page = browser.send(f"{url}/definitions/new", **fields).text
    assert "<details open>" in page and 'id="id_tag_error"' in page
    # More rows keep what was written.
    fields = DEGREE | {"type_1": "date", "more_rows": "yes"}
    page = browser.send(f"{url}/definitions/new", **fields).text
    assert 'name="attribute_5"' in page and 'name="attribute_6"' not in page
    assert 'value="year"' in page and page.count('value="date" selected') == 1
    assert not CredentialDefinition.objects.exists()


def read_header(browser, url, **given):
    fields = {"rows": "3", "read_header": "yes"} | given
    answer = browser.send(f"{url}/definitions/new", **fields)
    assert answer.status_code == 200
    return answer.text


def test_the_header_of_a_csv_file_becomes_rows(browser, url):
    lines = ["name,year", "name;year\r\nAl;20", '"name"\t year ', "\ufeffname,year"]
    for line in lines:
        file = SimpleUploadedFile("degrees.csv", line.encode())
        for given in ({"header_file": file}, {"header": line.lstrip("\ufeff")}):
            page = read_header(browser, url, **given)
            assert 'value="name"' in page and 'value="year"' in page
            assert 'name="attribute_2"' not in page
    page = read_header(browser, url, **DEGREE)
    assert "There are 0 names in that line" in page and 'value="year"' in page
    read_header(browser, url, **DEGREE, header="a" * 140_000)  # is cut


def test_a_schema_of_somebody_else_is_used_as_it_is(browser, url, api):
    other = Organization("Acme").defines("name", "age")
    path = f"{url}/definitions/new?schema={other['schemaId']}"
    page = read(browser, path)
    assert "age" in page and 'name="attribute_0"' not in page
    answer = browser.send(path, type_1="integer")
    assert answer.status_code == 302, answer.text
    [made] = api.get("/definitions/credentials")
    assert made["schemaId"] == other["schemaId"]
    assert made["claims"] == {"age": {"type": "integer"}}
    unknown = browser.get(f"{url}/definitions/new?schema=none")
    assert unknown.status_code == 404


REFUSED = [
    ({"attribute_1": "Name"}, "the same when case and spaces are ignored"),
    ({"name": "a/b"}, "Leave out : /"),
    ({"version": "one"}, "Error: New definition"),
    ({"attribute_0": "", "attribute_1": ""}, "at least one attribute"),
    ({"attribute_0": "", "attribute_1": "", "valid_until": "on"}, "at least one"),
]


def test_what_the_api_refuses_is_said_at_its_field(browser, url, api):
    for fields, sentence in REFUSED:
        answer = browser.send(f"{url}/definitions/new", **DEGREE | fields)
        assert answer.status_code == 200 and sentence in answer.text
    assert not CredentialDefinition.objects.exists()
    define(browser, url)
    # Other attributes under the same name are a conflict.
    fields = DEGREE | {"attribute_1": "grade"}
    page = browser.send(f"{url}/definitions/new", **fields).text
    assert 'role="alert"' in page
    assert CredentialDefinition.objects.count() == 1


def test_the_page_counts_the_credentials_by_state(browser, url, api):
    made, page = define(browser, url)
    assert "None yet." in page and "cannot be revoked" in page
    values = {"name": "Alice", "year": "2020"}
    offer = {"definitionId": made.definition_id, "credentialValues": values}
    api.post("/credentials", offer)
    page = read(browser, f"{url}/definitions/{made.pk}")
    assert "<dt>Offered</dt><dd>1</dd>" in page
    assert "2020" not in page.split("<main")[1]


def test_a_list_finds_definitions_by_name_and_id(browser, url, api):
    made, _ = define(browser, url)
    define(browser, url, name="Licence")
    for text in ("deg", made.definition_id, str(made.pk)):
        page = read(browser, f"{url}/definitions?q={text}")
        rows = page.split('id="rows"')[1]
        assert "Degree" in rows and "Licence" not in rows, text


@pytest.fixture
def job(college):
    Kind = Publication.Kind
    job = Publication.create_leased(college.tenant, Kind.SCHEMA, "schema-7", {})
    job.retry("ledger_unavailable")
    return job


def test_what_the_ledger_does_not_have_yet_is_tried_again(browser, viewer, url, job):
    assert "Try again" not in read(viewer, f"{url}/definitions")
    page = read(browser, f"{url}/definitions")
    assert "schema-7" in page and "ledger_unavailable" in page
    before = Publication.objects.get(pk=job.pk).due_at
    with mock.patch("credentials.publications.notify_worker") as notified:
        browser.send(f"{url}/publications/{job.pk}/retry")
    assert notified.called
    assert Publication.objects.get(pk=job.pk).due_at < before
    assert AuditEntry.objects.filter(action="publication.retried").count() == 1
    Publication.objects.filter(pk=job.pk).update(status="done", material=None)
    page = read(browser, browser.send(f"{url}/publications/{job.pk}/retry").url)
    assert "It is published, or was given up." in page and "schema-7" not in page


def test_the_key_of_a_failed_definition_goes_back(browser, url, api, monkeypatch):
    silence = Unavailable("ledger_unavailable", "The ledger does not respond.")
    fail = mock.Mock(side_effect=silence)
    monkeypatch.setattr(
        "credentials.publishing.CredentialDefinition.record_published", fail
    )
    page = browser.send(f"{url}/definitions/new", **DEGREE).text
    assert "The ledger does not respond." in page
    assert key_queue.free_keys().count() == 1


@pytest.mark.parametrize(
    ("names", "proposed"),
    [
        (["year", "Name"], "Name"),
        (["first name", "last name"], "last name"),
        (["Vor- und Nachname", "Nachname"], "Vor- und Nachname"),
        (["Full_Name", "name"], "Full_Name"),
        (["course name", "level", "username"], ""),
    ],
)
def test_only_a_word_for_a_name_is_proposed(names, proposed):
    assert propose_recipient(names) == proposed


def test_which_attribute_names_the_person_is_chosen(browser, url, api):
    for recipient, named in (("", "name"), ("none", None), ("1", "year")):
        define(browser, url, recipient=recipient, name=f"Degree {recipient}")
        made = api.get("/definitions/credentials")[0]
        assert made.get("recipientAttribute") == named
    page = read(
        browser, f"{url}/definitions/{CredentialDefinition.objects.latest('pk').pk}"
    )
    assert '<bdi>year</bdi> <span class="badge">Names the person</span>' in page
    given = {"name": "x", "rows": "3", "attribute_0": "name", "recipient": "2"}
    refused = browser.send(f"{url}/definitions/new", **given)
    assert "This attribute has no name" in refused.text


def test_a_button_makes_the_twin_and_each_leads_to_the_other(
    browser, url, api, settings, stored_keys
):
    made, page = define(browser, url, support_revocation="on")
    assert "Make its twin" not in page
    settings.PUBLIC_URL = "https://agency.example.org"
    api.put("/tenants/webvhDid", {})
    own = f"{url}/definitions/{made.pk}"
    assert "Make its twin" in read(browser, own)
    answer = browser.send(f"{own}/twin")
    twin = CredentialDefinition.objects.get(twin_of=made.definition_id)
    other = f"{url}/definitions/{twin.pk}"
    assert answer.url == other
    page = read(browser, other)
    assert f'href="{own}"' in page and "This is the twin of" in page
    assert "Published</span> did:webvh" in page
    page = read(browser, own)
    assert f'href="{other}"' in page and "Make its twin" not in page
    created = AuditEntry.objects.filter(action="definition.created")
    assert str(twin.pk) in created.values_list("object_id", flat=True)
    browser.send(f"{own}/twin")
    assert f"Its twin is {twin.definition_id}." in read(browser, own)
    api.post("/tenants/webvhDid/end")
    api.delete(f"/definitions/credentials/{twin.definition_id}")
    assert "Make its twin" not in read(browser, own)
