"""Issuing many in the studio: what the page checks and starts is what the API does."""

import io
import re
from datetime import date
from html import unescape

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from django.utils.html import escape
from openpyxl import load_workbook

from agency.studio import bulks
from connections.models import Connection
from credentials.models import Bulk, BulkRow, Credential, CredentialDefinition
from tenants.models import AuditEntry
from tests.agency.studio.conftest import actions, read
from tests.credentials.bulk.people import worker_issues
from tests.credentials.bulk.workbooks import workbook
from tests.support.steps import step

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(api, url, definition):
    """The address of the form of a definition."""
    return f"{url}/credentials/bulk?definition={definition.pk}"


def upload(browser, page, text, **fields):
    data = text if isinstance(text, bytes) else text.encode()
    file = SimpleUploadedFile("a.csv", data)
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
    header, example = answer.text.splitlines()
    assert header == "name,year,connectionId,walletId,recipientName,reference"
    assert example == "Example,42,,,,"
    assert "<strong>1</strong> of 1 row" in upload(browser, page, answer.text).text


def test_a_check_shows_the_wrong_cells_and_stores_nothing(browser, page):
    text = "name,year\nAl,2001\nBo,soon\n"
    shown = upload(browser, page, text, check="yes").text
    assert "<strong>1</strong> of 2 rows can be offered" in shown
    assert "<strong>1</strong> of 2 rows cannot be offered" in shown
    assert "<strong>1</strong> row: 3" in shown and "not_an_integer" in shown
    assert "The first is “<bdi>soon</bdi>”." in shown
    assert "<bdi>name</bdi></dt><dd><bdi>Al</bdi></dd>" in shown  # the first card
    assert "Issue 1</button>" in shown
    assert not Bulk.objects.exists() and not BulkRow.objects.exists()


def test_the_list_names_the_files(browser, url, page, api, caplog):
    hostile = "Club \u202e\x07<b>Mai" + "x" * 300 + ".csv"
    file = SimpleUploadedFile("members.csv", b"name,year\nAl,2001\n")
    file.name = hostile
    answer = browser.send(page, file=file, start="yes")
    started(browser, page, "name,year\nBo,2002\n")
    shown = read(browser, f"{url}/credentials/bulk")
    assert "<bdi>a.csv</bdi>" in shown
    row = Bulk.objects.earliest("pk")
    assert row.file_name.startswith("Club ") and len(row.file_name) == 100
    assert row.file_name.isprintable()
    assert f"<bdi>{escape(row.file_name)}</bdi>" in shown
    assert f"From <bdi>{escape(row.file_name)}</bdi>" in read(browser, answer.url)
    assert "Club" not in caplog.text
    assert not AuditEntry.objects.filter(details__icontains="Club").exists()


def test_columns_of_other_names_are_chosen(browser, page, api):
    text = "Full name;Year;Reference\nAl;2001;Ann\n"
    shown = upload(browser, page, text, start="yes").text
    # It is in clear text: only a column of just that name, or one that is chosen.
    assert "<option selected>Reference</option>" not in shown
    assert '<p class="note">Choose below in which column is: name.</p>' in shown
    assert "errorlist" not in shown and '<details id="how-read" open>' in shown
    assert "<option selected>Year</option>" in shown
    started(browser, page, text, column_0="Full name", column_1="Year")
    worker_issues()
    [offered] = api.get("/credentials")
    assert offered["values"] == {"name": "Al", "year": "2001"}


@step
def member(faber):
    """A definition with a date."""
    faber.defines("name", "born", name="Member", claims={"born": {"type": "date"}})
    return CredentialDefinition.objects.get(schema__name="Member")


@pytest.fixture
def member_page(api, url, member):
    return f"{url}/credentials/bulk?definition={member.pk}"


def values_offered(api):
    worker_issues()
    return sorted(one["values"]["born"] for one in api.get("/credentials"))


def test_a_german_workbook_is_issued(browser, member_page, api):
    rows = [["Name", "Born"], ["Ann", "17.05.1990"], ["Bo", date(1991, 1, 2)]]
    data = workbook(*rows, [], [None, None, " "], ["Cy", "1992-03-04"])
    shown = upload(browser, member_page, data, check="yes").text
    assert "<strong>3</strong> of 3 rows can be offered" in shown
    assert '<option value="dayFirst" selected>' in shown
    assert "Encoding" not in shown and "17 May 1990" in shown
    started(browser, member_page, data, date_form="dayFirst")
    assert values_offered(api) == ["19900517", "19910102", "19920304"]


def test_wrong_cells_say_whose_they_are_and_what_is_wrong(browser, member_page):
    CredentialDefinition.objects.update(recipient_attribute="name")
    rows = [["name", "born"], ["Ann Lee"], ["Bo Ray", "31.02.1990"], ["Cy", "1.2.1990"]]
    for data in (
        workbook(*rows),
        "name,born\nAnn Lee,\nBo Ray,31.02.1990\nCy,1.2.1990\n",
    ):
        shown = upload(browser, member_page, data, check="yes").text
        assert "born is empty." in shown and "2 (<bdi>Ann Lee</bdi>)" in shown
        assert "There is no such day. The first is “<bdi>31.02.1990</bdi>”." in shown
        assert "Days are read as 17.05.1990 or 17/05/1990." in shown
        assert "3 (<bdi>Bo Ray</bdi>)" in shown and "Issue 1</button>" in shown
        assert shown.index("Issue 1</button>") < shown.index("How the file is read")


def test_rows_are_retried_only_if_one_can_succeed(browser, page):
    address = started(browser, page, "name,year\nAl,1\nBo,soon\n")
    worker_issues()
    assert "Retry the failed rows" not in read(browser, address)
    address = started(browser, page, "name,year,connectionId\nAl,1,nobody\n")
    worker_issues()
    assert "Retry the failed rows" in read(browser, address)


def test_days_that_could_be_read_in_two_ways_are_asked_for(browser, member_page, api):
    text = "name,born\nAnn,05/04/1990\n"
    shown = upload(browser, member_page, text, start="yes").text
    assert "Choose below how the days are written." in shown
    started(browser, member_page, text, date_form="monthFirst")
    assert values_offered(api) == ["19900504"]


def test_who_of_a_file_has_not_accepted_is_listed(browser, page, url, api):
    CredentialDefinition.objects.update(recipient_attribute="name")
    address = started(browser, page, "name,year\nAnn Early,1\nBo Late,2\n")
    started(browser, page, "name,year\nCy Other,3\n")
    worker_issues()
    Credential.objects.filter(
        pk=BulkRow.objects.order_by("pk")[0].credential_id
    ).update(state="Requested", accepted_at=timezone.now())
    shown = unescape(read(browser, address))
    [query] = re.findall(r'credentials(\?[^"]+)">1 has not accepted</a>', shown)
    shown = read(browser, f"{url}/credentials{query}")
    assert "Bo Late" in shown and "Those of one <a" in shown
    assert "Ann Early" not in shown and "Cy Other" not in shown


def test_wrong_days_are_one_group(browser, member_page):
    rows = "".join(f"P{n},{n + 13}.13.1990\n" for n in range(7))
    shown = upload(browser, member_page, f"name,born\n{rows}").text
    assert "<strong>7</strong> rows: 2, 3, 4, 5, 6, …" in shown
    assert "The first is “<bdi>13.13.1990</bdi>”." in shown


def test_encoding_and_separator_are_found_and_changed(browser, page, api):
    data = "name;year\nJosé;2001\n".encode("windows-1252")
    shown = upload(browser, page, data, check="yes").text
    assert '<option value="windows-1252" selected>' in shown
    assert '<option value="semicolon" selected>' in shown and "José" in shown
    assert "Jos€" not in shown
    chosen = {"encoding": "macintosh", "separator": "semicolon"}
    assert "JosÈ" in upload(browser, page, data, check="yes", **chosen).text


def test_a_part_of_the_page_is_enough_for_htmx(browser, page):
    file = SimpleUploadedFile("a.csv", b"name,year\nAl,1\n")
    sent = {"file": file, "start": "yes", "form_token": "t1"}
    answer = browser.post(page, sent, headers={"HX-Request": "true"})
    assert answer.status_code == 200 and "/credentials/bulk/" in answer["HX-Redirect"]
    file = SimpleUploadedFile("a.csv", b"\xff\xfex")
    sent = {"file": file, "check": "yes", "form_token": "t2"}
    shown = browser.post(page, sent, headers={"HX-Request": "true"}).text
    assert shown.strip().startswith('<div id="found"') and "not UTF-16" in shown


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
    *changes, reading = actions()[-5:]
    assert changes == [f"bulk.{one}" for one in done.split()]
    assert reading == "values.revealed"


def test_rows_that_failed_say_whom_they_are_for(browser, viewer, page, api):
    CredentialDefinition.objects.update(recipient_attribute="name")
    names = ["Ann \u202eLee", "<b>Bo</b>" * 20]
    rows = "".join(f"{name},{n},nobody\n" for n, name in enumerate(names))
    address = started(browser, page, f"name,year,connectionId\n{rows}")
    worker_issues()
    shown, masked = read(browser, address), read(viewer, address)
    for name in map(escape, names):
        assert f'data-label="Person"><span><bdi>{name}</bdi>' in shown
        assert name not in masked
    assert masked.count("<bdi>••••••</bdi>") == 2


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


def test_the_result_as_a_workbook_and_codes_to_print(browser, page, url, api):
    text = "name,year,recipientName\n=1+1,2001,<b>Ann</b>\nBo\x01,2002,\n"
    address = started(browser, page, text)
    worker_issues()
    answer = browser.get(f"{address}/result.xlsx")
    file = io.BytesIO(b"".join(answer.streaming_content))
    header, ann, bo = load_workbook(file).active.iter_rows()
    entry = AuditEntry.objects.get(action="values.revealed")
    assert entry.details["rows"] == 2 and "Ann" not in str(entry.details)
    names = [cell.value for cell in header]
    name = ann[names.index("name")]
    assert (name.value, name.data_type) == ("=1+1", "s")
    assert bo[names.index("name")].value == "Bo"  # no workbook may hold U+0001
    link = ann[names.index("link")].value
    printed = read(browser, f"{address}/print")
    assert "&lt;b&gt;Ann&lt;/b&gt;" in printed and printed.count("<img src=") >= 2
    assert link and link not in printed  # only within the code
    Connection.objects.update(state=Connection.State.CONNECTED)
    assert "No offer by link waits" in read(browser, f"{address}/print?form=sheets")


def test_codes_that_were_removed_hide_no_later_ones(browser, page, monkeypatch):
    rows = "".join(f"P{number},{number}\n" for number in range(5))
    address = started(browser, page, f"name,year\n{rows}")
    worker_issues()
    gone = BulkRow.objects.order_by("number")[0].credential.connection
    Connection._base_manager.filter(pk=gone.pk).update(deleted_at=timezone.now())
    monkeypatch.setattr(bulks, "MAX_PRINTED", 3)
    printed = read(browser, f"{address}/print")
    assert printed.count('alt="QR code') == 3
    [last] = re.findall(r"after=(\d+)", printed)
    printed = read(browser, f"{address}/print?after={last}")
    assert printed.count('alt="QR code') == 1 and "Next codes" not in printed


def test_an_encoding_that_does_not_fit_can_be_changed(browser, page):
    data = "name;year\nJosé;2001\n".encode("windows-1252")
    shown = upload(browser, page, data, check="yes", encoding="utf-8").text
    assert "The file is not UTF-8 text." in shown and 'name="encoding"' in shown
    chosen = {"encoding": "windows-1252", "separator": ""}
    assert "José" in upload(browser, page, data, check="yes", **chosen).text


def test_a_viewer_prints_no_codes(browser, page, viewer):
    address = started(browser, page, "name,year\nAl,2001\n")
    worker_issues()
    for path in ("print", "result.xlsx", "result.csv"):
        assert viewer.get(f"{address}/{path}").status_code == 403
