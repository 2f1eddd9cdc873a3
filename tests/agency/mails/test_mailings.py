"""The links of a bulk go out by mail: to each holder once, or to nobody."""

from datetime import timedelta

import pytest
from django.db import connection
from django.utils import timezone

from agency.mails import mailings, offers, unsubscribing
from connections.models import Connection
from core.errors import AgencyError
from credentials.bulk import retention
from credentials.models import Bulk, Credential, MailDay, Mailing, MailingRow
from tenants import vault
from tenants.models import Tenant
from tests.agency.mails.people import (
    begin,
    club_of,
    server,
    states,
    worker_mails,
)
from tests.credentials.bulk.people import sent, worker_issues
from tests.support.races import at_once

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["server"]
SENT = ("Sent", "")


@pytest.fixture(autouse=True)
def known_for_long(faber):
    days = timezone.now() - timedelta(days=9)
    Tenant.objects.filter(pk=faber.tenant.pk).update(created_at=days)


def code_of(function, *given, **named):
    with pytest.raises(AgencyError) as caught:
        function(*given, **named)
    return caught.value.code


def test_each_holder_gets_one_mail_with_the_link_of_the_offer(faber, server):
    bulk = club_of(faber, "Ann", "Bo")
    mailing = begin(bulk, text="Dear {name}, here is your {card}.", language="de")
    worker_mails()
    worker_mails()
    assert states(mailing) == ("Done", [SENT, SENT])
    assert server.addresses == ["ann@club.example", "bo@club.example"]
    message = server.read()
    assert (
        str(message["From"])
        == f'"{faber.tenant.name} (Agency)" <agency@agency.example>'
    )
    assert message["Content-Language"] == "de"
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert message.get_content_type() == "text/plain"
    body = message.get_content().replace("\r\n", "\n")
    link = Credential.objects.order_by("pk").first().connection.invitation_url
    assert body.count("http") == 1 and f"\n{link}\n" in body
    assert "Dear Ann, here is your" in body
    assert body.startswith("Guten Tag Ann,")


def test_a_second_mailing_finds_nobody(faber, server):
    bulk = club_of(faber, "Ann")
    begin(bulk)
    assert code_of(begin, bulk) == "nobody_to_mail"
    worker_mails()
    assert code_of(begin, bulk) == "nobody_to_mail"
    assert Mailing.objects.count() == 1


def test_a_former_version_deletes_what_has_mails(faber, server):
    """It does not know their tables, so the database deletes the rows."""
    begin(club_of(faber, "Ann"))
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM credentials_bulkrow")
        cursor.execute("DELETE FROM credentials_credential")
        assert not MailingRow.objects.exists() and Mailing.objects.exists()
        cursor.execute("DELETE FROM credentials_bulk")
    assert not Mailing.objects.exists()


def test_two_mailings_at_once_mail_nobody_twice(faber, server):
    bulk = club_of(faber, "Ann", "Bo")
    outcomes = at_once(*[lambda: try_to_begin(bulk)] * 2)
    assert MailingRow.objects.count() == 2
    assert sorted(outcomes) in ([0, 2], [1, 1])
    worker_mails()
    assert sorted(server.addresses) == ["ann@club.example", "bo@club.example"]


def try_to_begin(bulk):
    try:
        return begin(bulk).rows.count()
    except AgencyError:
        return 0


def test_it_shows_what_the_mail_server_refuses(faber, server):
    bulk = club_of(faber, "Ann", "Bo", "Cy", "Di")
    server.refused = {
        "ann@club.example": "550 5.1.1 no such user ann@club.example",
        "bo@club.example": "451 4.7.1 later",
    }
    server.at_data = {"cy@club.example": "451 4.3.0 not now"}
    mailing = begin(bulk)
    mailings.send_due()
    assert states(mailing) == (
        "Running",
        [
            ("Refused", "refused_550"),
            ("Waiting", "refused_451"),
            ("Refused", "refused_451"),
            SENT,
        ],
    )
    assert mailing.due_at > timezone.now() + timedelta(minutes=4)
    server.refused = server.at_data = {}
    worker_mails()
    assert states(mailing)[0] == "Done"
    assert sorted(server.addresses) == ["bo@club.example", "di@club.example"]
    again = begin(bulk)
    worker_mails()
    assert states(again) == ("Done", [SENT, SENT])


def test_what_it_refuses_for_now_is_given_up_some_day(faber, server):
    server.refused = {"ann@club.example": "450 later"}
    mailing = begin(club_of(faber, "Ann"))
    for _ in range(5):
        worker_mails()
    assert states(mailing) == ("Done", [("Refused", "refused_450")])


def test_an_answer_that_never_came_is_unknown_and_not_tried_again(faber, server):
    server.at_data = {"ann@club.example": ""}
    mailing = begin(club_of(faber, "Ann", "Bo"))
    worker_mails()
    worker_mails()
    assert states(mailing) == ("Done", [("Unknown", ""), SENT])
    assert server.addresses == ["ann@club.example", "bo@club.example"]


def test_a_connection_that_ends_before_data_lets_the_others_go_first(faber, server):
    server.refused = {"ann@club.example": ""}
    mailing = begin(club_of(faber, "Ann", "Bo"))
    mailings.send_due()
    Mailing.objects.update(due_at=timezone.now())
    mailings.send_due()
    assert server.addresses == ["bo@club.example"]
    assert states(mailing)[1] == [("Waiting", "connection_lost"), SENT]


def test_a_mail_that_cannot_be_written_stops_no_other(
    faber, server, monkeypatch, caplog
):
    mailing = begin(club_of(faber, "Ann", "Bo", "Cy"))

    def build(*given, to, **named):
        if to == "bo@club.example":
            raise IndexError(f"no header for {to}")
        message = build_message(*given, to=to, **named)
        if to == "ann@club.example":
            message.as_bytes = None
        return message

    build_message = offers.build_message
    monkeypatch.setattr(offers, "build_message", build)
    worker_mails()
    unwritten = ("Refused", "cannot_write")
    assert states(mailing) == ("Done", [unwritten, unwritten, SENT])
    assert server.addresses == ["cy@club.example"]
    assert "IndexError" in caplog.text and "@club" not in caplog.text


@pytest.mark.parametrize("evil", ["\r\n", "\n", "\r", "\u2028", "\x85"])
def test_names_and_templates_add_no_header_and_no_reader(faber, server, evil):
    evil = f"Ann{evil}Bcc: eve@evil.example{evil}{evil}Buy now at evil.example"
    bulk = club_of(faber, "Ann")
    row = bulk.rows.get().credential
    vault.seal(row, "recipient_name", evil)
    row.save(update_fields=["recipient_name"])
    Tenant.objects.filter(pk=faber.tenant.pk).update(name=evil)
    bulk.tenant.refresh_from_db()
    code = code_of(begin, bulk, text=f"Dear {{name}},{evil}")
    assert code == "invalid_mail_text"
    begin(bulk, text="Dear {name},\n\nfrom {organization}: {card}.")
    worker_mails()
    assert server.addresses == ["ann@club.example"]
    message = server.read()
    names = [name.lower() for name, _ in message.items()]
    assert len(names) == len(set(names)) and not {"bcc", "cc"} & set(names)
    assert message["To"] == "ann@club.example"
    assert [one.addr_spec for one in message["From"].addresses] == [
        "agency@agency.example"
    ]
    body = message.get_content()
    assert body.count("http") == 1
    assert "eve@" not in body and "evil.example" not in body


def test_a_worker_that_stops_begins_no_further_mail(faber, server, monkeypatch):
    mailing = begin(club_of(faber, "Ann", "Bo"))
    leased = Mailing.claim_next()
    monkeypatch.setattr(mailings.loop, "is_stopped", True)
    mailings.take_turn(leased)
    assert server.addresses == []
    monkeypatch.undo()
    mailings.send_due()
    assert states(mailing) == ("Done", [SENT, SENT])


def test_an_address_that_the_server_does_not_know_counts_for_the_day(
    faber, server, settings
):
    settings.ORGANIZATION_MAILS_A_DAY = 2
    server.refused = {f"{name}@club.example": "550 unknown" for name in ("ann", "bo")}
    mailing = begin(club_of(faber, "Ann", "Bo", "Cy"))
    worker_mails()
    refused = ("Refused", "refused_550")
    assert states(mailing) == ("Running", [refused, refused, ("Waiting", "")])
    assert mailing.last_error == "daily_limit"


def test_all_wait_while_the_server_is_away(faber, server, settings):
    mailing = begin(club_of(faber, "Ann"))
    port, settings.EMAIL_PORT = settings.EMAIL_PORT, 1
    worker_mails()
    assert states(mailing) == ("Running", [("Waiting", "")])
    assert mailing.last_error == "mail_server_unavailable"
    settings.EMAIL_PORT = port
    worker_mails()
    assert states(mailing) == ("Done", [SENT])


def test_who_has_unsubscribed_gets_none_from_any_organization(faber, server, client):
    mailing = begin(club_of(faber, "Ann", "Bo"))
    path = unsubscribing.link_for("ANN@club.example").partition("example")[2]
    assert b"Unsubscribe" in client.get(path).content
    assert not unsubscribing.is_unsubscribed("ann@club.example")
    body = "List-Unsubscribe=One-Click"
    done = client.post(path, body, content_type="application/x-www-form-urlencoded")
    assert done.status_code == 200
    worker_mails()
    assert states(mailing) == ("Done", [("Skipped", "unsubscribed"), SENT])
    assert client.post(path[:-1] + "!").status_code == 404


@pytest.mark.parametrize("other", ["ann+2@club.example", "ANN+News@Club.Example"])
def test_who_has_unsubscribed_is_not_reached_by_a_tag(faber, other):
    unsubscribing.unsubscribe(unsubscribing.digest_of("ann@club.example"))
    assert unsubscribing.is_unsubscribed(other)
    for one in ("anna@club.example", "+ann@club.example", "ann@club2.example"):
        assert not unsubscribing.is_unsubscribed(one)


def test_an_attribute_may_have_the_name_of_the_column(faber, server):
    definition = faber.defines("name", mailings.COLUMN)
    made = sent(faber, definition, "name,mailAddress\nAnn,ann@club.example")
    worker_issues()
    bulk = Bulk.started(faber.tenant).select_related("tenant").get(pk=made["bulkId"])
    assert mailings.find_sources(bulk) == [mailings.COLUMN]
    assert mailings.count_open(bulk, mailings.COLUMN) == 1
    begin(bulk)
    worker_mails()
    assert server.addresses == ["ann@club.example"]


def test_an_offer_that_was_taken_needs_no_mail(faber, server):
    mailing = begin(club_of(faber, "Ann", "Bo"))
    first = MailingRow.objects.order_by("number").first()
    Connection.objects.filter(pk=first.credential.connection_id).update(
        state=Connection.State.CONNECTED
    )
    worker_mails()
    assert states(mailing)[1] == [("Skipped", "offer_is_not_open"), SENT]


def test_it_is_paused_resumed_and_stopped(faber, server):
    mailing = begin(club_of(faber, "Ann"))
    mailing.pause()
    worker_mails()
    assert states(mailing) == ("Paused", [("Waiting", "")])
    assert code_of(mailing.pause) == "wrong_state"
    mailing.resume()
    mailing.stop()
    worker_mails()
    assert states(mailing) == ("Stopped", [("Stopped", "")])
    assert server.addresses == []
    assert code_of(mailing.resume) == code_of(mailing.stop) == "wrong_state"


def test_a_process_that_ends_leaves_the_mail_of_one_offer_whole_or_none(
    faber, server, monkeypatch
):
    club_of(faber, "Ann")
    offer = Credential.objects.get()
    options = mailings.clean_options(faber.tenant)
    monkeypatch.setattr(Mailing, "save", lambda *given, **named: exit())
    with pytest.raises(SystemExit):
        mailings.begin_single(offer, "ann@club.example", options)
    assert not MailingRow.objects.exists()
    monkeypatch.undo()
    mailings.begin_single(offer, "ann@club.example", options)
    worker_mails()
    assert server.addresses == ["ann@club.example"]


def test_a_pause_counts_for_the_mails_of_the_present_turn(faber, server):
    mailing = begin(club_of(faber, "Ann"))
    leased = Mailing.claim_next()
    mailing.pause()
    mailings.take_turn(leased)
    assert states(mailing) == ("Paused", [("Waiting", "")])


def test_a_day_has_so_many_mails_and_the_rest_waits(faber, server, settings):
    settings.ORGANIZATION_MAILS_A_DAY = 1
    mailing = begin(club_of(faber, "Ann", "Bo"))
    worker_mails()
    assert states(mailing) == ("Running", [SENT, ("Waiting", "")])
    assert mailing.last_error == "daily_limit" and mailing.due_at > timezone.now()
    worker_mails()
    assert len(server.messages) == 1
    MailDay.objects.update(day="2026-01-01")
    worker_mails()
    assert len(server.messages) == 2


def test_a_new_organization_has_a_tenth(faber, server, settings):
    settings.ORGANIZATION_MAILS_A_DAY = 1000
    assert MailDay.left_today(Tenant.objects.get(pk=faber.tenant.pk)) == 1000
    Tenant.objects.update(created_at=timezone.now())
    assert MailDay.left_today(Tenant.objects.get(pk=faber.tenant.pk)) == 100


def test_nothing_is_sent_unless_the_operator_wants_it(faber, server, settings):
    bulk = club_of(faber, "Ann")
    begin(bulk)
    settings.ORGANIZATION_MAIL = False
    worker_mails()
    assert server.addresses == []
    assert code_of(begin, bulk) == "mail_is_off"


def test_addresses_are_sealed_and_go_with_the_bulk(faber, server):
    bulk = club_of(faber, "Ann")
    begin(bulk)
    row = MailingRow.objects.get()
    assert b"ann" not in bytes(row.address)
    long_ago = timezone.now() - timedelta(days=31)
    Bulk.objects.update(updated_at=long_ago)
    Mailing.objects.update(updated_at=long_ago)
    retention.delete_old_bulks()
    Mailing.objects.get().pause()
    retention.delete_old_bulks()
    Mailing.objects.get().resume()
    worker_mails()
    retention.delete_old_bulks()
    assert Mailing.objects.get().state == "Done" and server.addresses
    Mailing.objects.update(updated_at=long_ago)
    retention.delete_old_bulks()
    assert not MailingRow.objects.exists() and not Mailing.objects.exists()


def test_an_address_goes_with_the_record_of_the_credential(faber, server):
    begin(club_of(faber, "Ann"))
    credential = Credential.objects.get()
    faber.delete(f"/credentials/delete/{credential.pk}")
    assert not MailingRow.objects.exists()
