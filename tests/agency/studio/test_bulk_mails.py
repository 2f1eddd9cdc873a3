"""In the studio: from a club's file to mails, their progress and a reminder."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from agency.mails import mailings, unsubscribing
from connections.models import Connection
from credentials.models import BulkRow, Credential, CredentialDefinition, MailingRow
from tenants.models import AuditEntry, Tenant
from tests.agency.mails.people import server, worker_mails
from tests.agency.studio.conftest import read
from tests.agency.studio.test_bulks import started, upload
from tests.credentials.bulk.people import worker_issues
from tests.support.steps import step

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["server"]
FILE = (
    "name,Contact\nAnn,ann@club.example\nBo,bo@club.example\nCy,cy@club.example\n"
    "Di,no address\nEve,\n"
)


@step
def definition(faber):
    Tenant.objects.update(created_at=timezone.now() - timedelta(days=9))
    faber.defines("name", name="Member card")
    return CredentialDefinition.objects.get()


@pytest.fixture
def page(api, url, definition, server):
    return f"{url}/credentials/bulk?definition={definition.pk}"


def issued(browser, page):
    bulk = started(browser, page, FILE, column_4="Contact", column_3="name")
    worker_issues()
    return bulk


def test_the_column_of_addresses_is_proposed_and_wrong_ones_are_shown(browser, page):
    shown = upload(browser, page, FILE, check="yes").text
    assert "<option selected>Contact</option>" in shown
    assert "<strong>1</strong> row: 5" in shown and "This is no mail address" in shown


def test_where_nobody_sends_mails_no_address_is_asked_for(browser, page, settings):
    settings.ORGANIZATION_MAIL = False
    assert "Mail address" not in upload(browser, page, FILE, check="yes").text
    bulk = issued(browser, page)
    assert not BulkRow.objects.exclude(mail_address=None).exists()
    assert "Send by mail" not in read(browser, bulk)
    assert "sends no mails for organizations" in read(browser, f"{bulk}/mail")


def test_a_club_is_mailed_in_three_clicks(browser, viewer, page, server):
    bulk = issued(browser, page)
    unsubscribing.unsubscribe(unsubscribing.digest_of("bo@club.example"))
    server.refused = {"cy@club.example": "550 5.1.1 unknown"}
    assert "Send by mail" in read(browser, bulk)
    shown = read(browser, f"{bulk}/mail")
    assert "ann@club.example" in shown and "Send 3 mails" in shown
    assert "Hello Ann," in shown and "Member card" in shown
    assert "You can answer this mail" in shown  # its sender is proposed for that
    given = {"source": "mailAddress", "language": "de", "text": "Hallo {name}."}
    shown = browser.send(f"{bulk}/mail", **given).text
    assert "Guten Tag Ann," in shown and "Hallo Ann." in shown
    answer = browser.send(f"{bulk}/mail", **given, send="yes")
    assert answer.url == bulk
    assert "0 of 3 mails" in read(browser, bulk)
    worker_mails()
    shown = read(browser, bulk)
    assert "3 of 3 mails" in shown and "has unsubscribed" in shown
    assert "refused it (550)" in shown and "not seen here" in shown
    people = re.findall('data-label="Person"><span><bdi>(.*?)</bdi>', shown)
    assert people == ["Bo", "Cy", "Di"]  # the last one by the file
    masked = re.findall("<bdi>(•+ ….{6})</bdi>", read(viewer, bulk))
    assert len({*masked}) == 2
    assert server.addresses == ["ann@club.example"]
    assert AuditEntry.objects.filter(action="bulk.mailed").count() == 1
    # The two that got none may be tried again: it is the others who get no second one.
    assert "Send 2 mails" in read(browser, f"{bulk}/mail")
    browser.send(f"{bulk}/mail", **given, send="yes")
    worker_mails()
    assert server.addresses == ["ann@club.example"]


def test_who_may_not_issue_mails_nothing(
    browser, page, url, server, stranger, viewer, developer
):
    bulk = issued(browser, page)
    offer = f"{url}/credentials/{Credential.objects.first().pk}"
    given = {"source": "mailAddress", "language": "en", "text": "Buy", "send": "yes"}
    one = given | {"address": "eve@evil.example"}
    for other in (stranger, viewer, developer):
        refused = {404} if other == stranger else {302, 403, 404}
        assert other.send(f"{bulk}/mail", **given).status_code in refused
        assert other.send(f"{offer}/mail", **one).status_code in refused
        for path in ("remind", "mails/pause", "mails/resume", "mails/stop"):
            assert other.send(f"{bulk}/{path}").status_code in refused
    worker_mails()
    assert not MailingRow.objects.exists() and server.messages == []


def test_a_text_with_a_link_is_refused_on_the_page(browser, page):
    bulk = issued(browser, page)
    given = {"source": "mailAddress", "language": "en", "text": "See evil.example"}
    shown = browser.send(f"{bulk}/mail", **given, send="yes").text
    assert "A link or an address stands in it" in shown
    assert not MailingRow.objects.exists()


def test_who_has_not_accepted_is_reminded_once(browser, page, server):
    bulk = issued(browser, page)
    given = {"source": "mailAddress", "language": "en"}
    browser.send(f"{bulk}/mail", **given, send="yes")
    worker_mails()
    taken = MailingRow.objects.order_by("number").first().credential
    Connection.objects.filter(pk=taken.connection_id).update(state="Connected")
    assert "Remind who has not accepted" in read(browser, bulk)
    browser.send(f"{bulk}/remind")
    worker_mails()
    shown = read(browser, bulk)
    assert "Reminders by mail" in shown and "2 of 2 mails" in shown
    assert server.addresses[3:] == ["bo@club.example", "cy@club.example"]
    assert server.read(-1)["Subject"].startswith("Reminder: ")
    browser.send(f"{bulk}/remind")
    assert "No offer by link waits" in read(browser, bulk)
    worker_mails()
    assert len(server.messages) == 5


def test_mails_are_paused_resumed_and_stopped(browser, page, server):
    bulk = issued(browser, page)
    browser.send(f"{bulk}/mail", source="mailAddress", language="en", send="yes")
    browser.send(f"{bulk}/mails/pause")
    assert "Resume the mails" in read(browser, bulk)
    browser.send(f"{bulk}/mails/resume")
    browser.send(f"{bulk}/mails/stop")
    worker_mails()
    assert "Stopped" in read(browser, bulk) and server.addresses == []
    browser.send(f"{bulk}/mails/stop")
    assert "No mails of this file wait" in read(browser, bulk)


def test_an_older_mailing_that_is_paused_can_be_resumed(browser, page, server):
    bulk = issued(browser, page)
    server.refused = {"ann@club.example": "550 unknown", "bo@club.example": "450 later"}
    given = {"source": "mailAddress", "language": "en", "send": "yes"}
    browser.send(f"{bulk}/mail", **given)
    mailings.send_due()  # Bo's mail waits
    browser.send(f"{bulk}/mails/pause")
    for _ in range(2):
        browser.send(f"{bulk}/mail", **given)  # to Ann again
        mailings.send_due()
    assert "Resume the mails" in read(browser, bulk)
    server.refused = {}
    browser.send(f"{bulk}/mails/resume")
    worker_mails()
    assert "bo@club.example" in server.addresses


def test_one_offer_is_mailed_from_its_page(browser, page, api, url, server):
    api.post("/credentials", {
        "definitionId": CredentialDefinition.objects.get().definition_id,
        "credentialValues": {"name": "Ann"}, "recipientName": "Ann",
    })  # fmt: skip
    offer = f"{url}/credentials/{Credential.objects.get().pk}"
    assert f"{offer}/mail" in read(browser, offer)
    given = {"address": "ann@club.example", "language": "fr", "text": "Voilà, {name}."}
    assert "Voilà, Ann." in browser.send(f"{offer}/mail", **given).text
    wrong = given | {"address": "a@b.example, c@d.example"}
    assert browser.send(f"{offer}/mail", **wrong, send="yes").status_code == 200
    assert browser.send(f"{offer}/mail", **given, send="yes").status_code == 302
    worker_mails()
    assert server.addresses == ["ann@club.example"]
    assert "Voilà, Ann." in server.read().get_content()
    shown = read(browser, f"{offer}/mail")
    assert "Sent" in shown and "Send the mail" not in shown
    again = browser.send(f"{offer}/mail", **given, send="yes").text
    assert "had no mail yet" in again or "Sent" in again
    worker_mails()
    assert len(server.messages) == 1
