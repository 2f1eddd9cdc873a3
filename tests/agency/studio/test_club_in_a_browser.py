"""A club of 500 in Chromium: from a spreadsheet with German dates to a mail for each."""

import io
import signal
from datetime import date, timedelta

import pytest
from django.conf import settings as current
from django.utils import timezone
from openpyxl import load_workbook

from agency.mails import unsubscribing
from credentials.models import Bulk, Credential, CredentialDefinition, Mailing
from tenants.models import Tenant
from tests.agency.mails.people import mail_settings, server, states, worker_mails
from tests.agency.mails.test_killed_mailing import WORK
from tests.credentials.bulk.people import worker_issues
from tests.credentials.bulk.workbooks import workbook
from tests.support.chromium import MARKS
from tests.support.killed_worker import start_worker

pytestmark = [*MARKS, pytest.mark.timeout(300)]
__all__ = ["server"]
MEMBERS, BAD = 500, {7, 80, 81, 300, 499}
MAX_CLICKS = 8
CLUB = {
    "name": "Member card", "version": "1.0", "attributes": ["name", "born"],
    "claims": {"born": {"type": "date"}}, "recipientAttribute": "name",
}  # fmt: skip
REFUSED, UNSUBSCRIBED = "m3@club.example", "m5@club.example"
ADDRESSES = [f"m{number}@club.example" for number in range(MEMBERS)]


def spreadsheet(bad=()):
    """As a club has it: days as text and as cells of a date, of two forms."""
    rows = [["Mitglied seit", "Name", "Born", "E-Mail"]]
    for number, address in enumerate(ADDRESSES):
        born = f"{number % 28 + 1}.{number % 12 + 1}.1990"
        if number % 2:
            born = date(1990, number % 12 + 1, number % 28 + 1)
        rows.append(
            [2020, f"Member {number}", "31.02.1990" if number in bad else born, address]
        )
    return workbook(*rows)


class Hand:
    """Clicks, and counts how often. To choose a file is a click too."""

    def __init__(self, page):
        self.page, self.clicks = page, 0

    def choose(self, file):
        self.page.tab.set_input_files("input[type=file]", file)
        self.clicks += 1

    def click(self, text, then):
        self.page.tab.click(f"main :is(a, button):text-is('{text}')")
        self.page.tab.wait_for_selector(f"text={then}")
        self.clicks += 1


@pytest.fixture
def form(api, url, server):
    """The page that a card of the club is issued to many from."""
    Tenant.objects.update(created_at=timezone.now() - timedelta(days=9))
    api.post("/definitions/credentials", CLUB)
    definition = CredentialDefinition.objects.get()
    return f"{url}/credentials/bulk?definition={definition.pk}"


def kill_a_worker(server):
    """After the mail server has taken a mail, before the worker has noted it."""
    fault = {"FAULT_POINT": "after_mail_data", "FAULT_INJECTION": "1"}
    worker = start_worker(WORK, **fault, **mail_settings(server))
    assert worker.wait(timeout=60) == -signal.SIGKILL


def test_a_club_of_500_gets_its_cards_by_mail(page, browser, form, server, tmp_path):
    page.sign_in(browser, current.SESSION_COOKIE_NAME)
    hand, file = Hand(page), tmp_path / "club.xlsx"
    page.open(form)
    file.write_bytes(spreadsheet(BAD))
    hand.choose(file)
    hand.click("Check the file", "The first is “31.02.1990”.")
    found = page.text("#found")
    assert "495 of 500 rows can be offered" in " ".join(found.split())
    assert "rows: 9 (Member 7), 82 (Member 80), 83 (Mem" in " ".join(found.split())
    file.write_bytes(spreadsheet())
    hand.choose(file)
    hand.click("Issue 495", "0 of 500 rows")
    worker_issues()
    page.tab.wait_for_selector("text=No row waits any more.")
    assert Credential.objects.filter(role="issuer").count() == MEMBERS

    unsubscribing.unsubscribe(unsubscribing.digest_of(UNSUBSCRIBED))
    server.refused = {REFUSED: "550 5.1.1 unknown"}
    hand.click("Send by mail", "Each holder of a link that waits gets one mail")
    assert "Member 0" in page.text(".mail-preview")
    hand.click(f"Send {MEMBERS} mails", f"0 of {MEMBERS} mails")
    kill_a_worker(server)
    worker_mails()
    page.tab.wait_for_selector(f"text={MEMBERS} of {MEMBERS} mails")
    shown = page.text("#live")
    assert "refused it (550)" in shown and "has unsubscribed" in shown
    left_out = {REFUSED, UNSUBSCRIBED}
    assert sorted(server.addresses) == sorted(set(ADDRESSES) - left_out)
    state, rows = states(Mailing.objects.get())
    assert state == "Done" and rows[0] == (
        "Unknown",
        "",
    )  # by the worker that was killed
    assert [code for _, code in rows if code] == ["refused_550", "unsubscribed"]

    with page.tab.expect_download() as download:
        page.tab.click("text=As a workbook")
    hand.clicks += 1
    assert hand.clicks <= MAX_CLICKS
    check_result(load_workbook(io.BytesIO(download.value.path().read_bytes())))
    assert Bulk.objects.count() == 1


def check_result(result):
    """Each row of the file is there, with a link of its own."""
    header, *rows = result.active.iter_rows(values_only=True)
    names = [row[header.index("name")] for row in rows]
    assert names == [f"Member {number}" for number in range(MEMBERS)]
    assert {row[header.index("state")] for row in rows} == {"Offered"}
    assert len({row[header.index("link")] for row in rows}) == MEMBERS
    assert {len(row[header.index("born")]) for row in rows} == {8}
