"""Issuing many in the studio: what the page checks and starts is what the API does."""

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from credentials.models import Bulk, BulkRow, Credential, CredentialDefinition
from tenants.models import AuditEntry
from tests.agency.studio.conftest import actions, read
from tests.credentials.bulk.people import worker_issues

pytestmark = pytest.mark.django_db(transaction=True)
DEFINITION = {
    "name": "Degree", "version": "1.0", "attributes": ["name", "year"],
    "claims": {"year": {"type": "integer"}},
}  # fmt: skip


@pytest.fixture
def page(api, url):
    """The address of the form of a definition."""
    api.post("/definitions/credentials", DEFINITION)
    definition = CredentialDefinition.objects.get()
    return f"{url}/credentials/bulk?definition={definition.pk}"


def upload(browser, page, text, **fields):
    file = SimpleUploadedFile("a.csv", text.encode())
    return browser.send(page, file=file, **fields)


def started(browser, page, text, **fields):
    answer = upload(browser, page, text, start="yes", **fields)
    assert answer.status_code == 302, answer.text
    return answer.url


def test_the_template_has_the_names_of_the_columns(browser, page):
    shown = read(browser, page)
    [address] = re.findall(r'href="([^"]+template.csv)"', shown)
    answer = browser.get(address)
    assert answer["Content-Type"].startswith("text/csv")
    assert answer.content == b"name,year,connectionId,walletId,reference\r\n"


def test_a_check_shows_the_wrong_cells_and_stores_nothing(browser, page):
    text = "name,year\nAl,2001\nBo,soon\n"
    shown = upload(browser, page, text, check="yes").text
    assert "<strong>1</strong> of 2 rows can be offered" in shown
    assert '<td data-label="Row">3</td>' in shown and "not_an_integer" in shown
    assert "Issue 1</button>" in shown
    assert not Bulk.objects.exists() and not BulkRow.objects.exists()


def test_columns_of_other_names_are_chosen(browser, page, api):
    text = "Full name;Year;Reference\nAl;2001;Ann\n"
    shown = upload(browser, page, text, start="yes").text
    # It is in clear text: only a column of just that name, or one that is chosen.
    assert "<option selected>Reference</option>" not in shown
    assert "Choose below in which column is: name." in shown
    assert "<option selected>Year</option>" in shown
    started(browser, page, text, column_0="Full name", column_1="Year")
    worker_issues()
    [offered] = api.get("/credentials")
    assert offered["values"] == {"name": "Al", "year": "2001"}


def test_a_part_of_the_page_is_enough_for_htmx(browser, page):
    file = SimpleUploadedFile("a.csv", b"name,year\nAl,1\n")
    sent = {"file": file, "start": "yes", "form_token": "t1"}
    answer = browser.post(page, sent, headers={"HX-Request": "true"})
    assert answer.status_code == 200 and "/credentials/bulk/" in answer["HX-Redirect"]
    file = SimpleUploadedFile("a.csv", b"\xff")
    sent = {"file": file, "check": "yes", "form_token": "t2"}
    shown = browser.post(page, sent, headers={"HX-Request": "true"}).text
    assert shown.strip().startswith('<div id="found"') and "not UTF-8" in shown


def test_progress_pause_retry_and_result(browser, page, url):
    text = "name,year,connectionId\nAl,1,\nBo,x,\nCy,3,nobody\n"
    address = started(browser, page, text)
    assert address in read(browser, f"{url}/credentials/bulk")
    assert "Issue many" in read(browser, f"{url}/credentials")
    shown = read(browser, address)
    assert 'max="3" value="2"' in shown and "data-watched" in shown
    version = re.search(r'data-version="([^"]+)"', shown)[1]
    seen = f"{address}/live?seen={version}"
    assert browser.get(seen).status_code == 204
    browser.send(f"{address}/pause")
    assert "Paused" in read(browser, seen)
    browser.send(f"{address}/resume")
    worker_issues()
    assert 'max="3" value="3"' in read(browser, address)
    browser.send(f"{address}/retry")
    assert 'max="3" value="2"' in read(browser, address)
    worker_issues()
    result = b"".join(browser.get(f"{address}/result.csv").streaming_content).decode()
    [offered] = Credential.objects.all()
    assert offered.connection.invitation_url in result
    assert "connectionId: not_found" not in result and "not_found" in result
    done = "started paused resumed retried"
    assert actions()[-4:] == [f"bulk.{one}" for one in done.split()]


def test_a_file_is_deleted_when_asked_and_not_running(browser, page, url, viewer):
    address = started(browser, page, "name,year\nAl,1\nBo,2\n")
    assert "Delete this file" not in read(browser, address)
    refused = browser.send(f"{address}/remove")
    assert "First pause it." in read(browser, refused.url)
    worker_issues()
    assert "Delete this file" in read(browser, address)
    assert "Delete this file" not in viewer.get(address).text
    assert "Delete this file?" in read(browser, f"{address}/remove")
    assert Bulk.objects.count() == 1
    answer = browser.send(f"{address}/remove")
    assert answer.url == f"{url}/credentials/bulk"
    assert not Bulk.objects.exists() and not BulkRow.objects.exists()
    assert Credential.objects.count() == 2
    assert browser.get(address).status_code == 404
    entry = AuditEntry.objects.get(action="bulk.deleted")
    assert address.endswith(entry.object_id)
