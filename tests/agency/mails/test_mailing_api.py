"""Over REST: a bulk is mailed, watched, paused, stopped and reminded."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from agency.mails import mailings
from connections.models import Connection
from credentials.models import Mailing, MailingRow
from tenants.models import ApiKey, AuditEntry, Scope, Tenant
from tests.agency.mails.people import club_of, server, worker_mails
from tests.core.api.lists import walk
from tests.support.errors import assert_error, error_of
from tests.support.people import Api

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["server"]


@pytest.fixture(autouse=True)
def known_for_long(faber, server):
    days = timezone.now() - timedelta(days=9)
    Tenant.objects.filter(pk=faber.tenant.pk).update(created_at=days)


def with_scopes(faber, *scopes):
    token = ApiKey.issue("access_token", faber.tenant, "Few", scopes=scopes)[1]
    return Api(token, faber.made.subscription_key)


def of(bulk, **more):
    return {"bulkId": str(bulk.pk)} | more


def test_a_program_mails_a_club(faber, server):
    bulk = club_of(faber, "Ann", "Bo", "Cy")
    server.refused = {"bo@club.example": "550 5.1.1 no such user"}
    text = "Dear {name}, here is your {card}."
    made = faber.post(
        "/mailings", of(bulk, text=text, language="de", replyTo="office@club.example")
    )
    assert (made["state"], made["counts"]) == ("Running", {"Waiting": 3})
    worker_mails()
    found = faber.get(f"/mailings/{made['mailingId']}")
    assert found["state"] == "Done" and "finishedAtUtc" in found
    assert found["counts"] == {"Sent": 2, "Refused": 1}
    [error] = found["errors"]
    assert (error["row"], error["state"], error["code"]) == (
        3,
        "Refused",
        "refused_550",
    )
    assert "(550)" in error["message"]
    assert server.addresses == ["ann@club.example", "cy@club.example"]
    mail = server.read()
    assert (
        mail["Content-Language"] == "de" and "office@club.example" in mail["Reply-To"]
    )
    assert "Dear Ann, here is your" in mail.get_content()
    entry = AuditEntry.objects.get(action="bulk.mailed")
    assert entry.actor_kind == "key" and entry.details["rows"] == 3


def test_a_preview_stores_nothing_and_needs_values_for_what_people_read(faber, server):
    bulk = club_of(faber, "Ann", "Bo")
    shown = faber.post("/mailings/preview", of(bulk, text="Dear {name}."))
    assert (shown["mails"], shown["isExact"], shown["leftToday"]) == (2, True, 1000)
    assert shown["mailAddress"] == "ann@club.example" and shown["subject"]
    assert "Dear Ann." in shown["text"] and "https://…" in shown["text"]
    few = with_scopes(faber, Scope.ISSUE).post("/mailings/preview", of(bulk))
    assert few.keys() == {"mails", "isExact", "leftToday", "subject"}
    assert not Mailing.objects.exists()
    faber.post("/mailings", of(bulk))
    shown = faber.post("/mailings/preview", of(bulk))
    assert shown["mails"] == 0 and "text" not in shown


def test_what_the_studio_refuses_is_refused_with_the_same_codes(
    faber, server, settings
):
    bulk = club_of(faber, "Ann")
    for path in ("/mailings", "/mailings/preview"):
        error = error_of(faber.post, path, of(bulk, text="See evil.example"))
        assert_error(error, 400, "invalid_mail_text")
        for member, wrong in (
            ("source", "salary"),
            ("language", "xx"),
            ("replyTo", "a@b.example, c@d.example"),
            ("txt", "Hello"),
        ):
            error = error_of(faber.post, path, of(bulk, **{member: wrong}))
            assert_error(error, 400, "invalid_request")
            assert member in error.body["errors"]
        error = error_of(faber.post, path, {"bulkId": str(uuid4())})
        assert_error(error, 404, "not_found")
    faber.post("/mailings", of(bulk))
    assert_error(error_of(faber.post, "/mailings", of(bulk)), 409, "nobody_to_mail")
    settings.ORGANIZATION_MAIL = False
    assert_error(error_of(faber.post, "/mailings", of(bulk)), 409, "mail_is_off")
    assert Mailing.objects.count() == 1


def test_an_organization_has_few_mailings_that_are_not_done(faber, server, monkeypatch):
    first, second = club_of(faber, "Ann"), club_of(faber, "Bo")
    monkeypatch.setattr("credentials.models.mailing.MAX_UNFINISHED", 1)
    faber.post("/mailings", of(first))
    error = error_of(faber.post, "/mailings", of(second))
    assert_error(error, 409, "too_many_mailings")


def test_a_call_that_is_sent_again_mails_nobody_twice(faber, server):
    bulk = club_of(faber, "Ann")
    key = {"Idempotency-Key": "k1"}
    first, again = (
        faber.send("post", "/mailings", of(bulk), **key).json() for _ in range(2)
    )
    assert first == again and Mailing.objects.count() == 1
    worker_mails()
    assert server.addresses == ["ann@club.example"]


def test_it_is_paused_resumed_and_stopped_for_good(faber, server):
    bulk = club_of(faber, "Ann")
    path = f"/mailings/{faber.post('/mailings', of(bulk))['mailingId']}"
    assert faber.post(f"{path}/pause")["state"] == "Paused"
    worker_mails()
    assert_error(error_of(faber.post, f"{path}/pause"), 409, "wrong_state")
    assert faber.post(f"{path}/resume")["state"] == "Running"
    assert_error(error_of(faber.post, f"{path}/resume"), 409, "wrong_state")
    stopped = faber.post(f"{path}/stop")
    assert (stopped["state"], stopped["counts"]) == ("Stopped", {"Stopped": 1})
    worker_mails()
    assert server.addresses == []
    assert_error(error_of(faber.post, f"{path}/stop"), 409, "wrong_state")
    actions = AuditEntry.objects.filter(action__startswith="bulk.mails_")
    assert {one.action for one in actions} == {
        "bulk.mails_paused", "bulk.mails_resumed", "bulk.mails_stopped"
    }  # fmt: skip


def test_who_has_not_accepted_is_reminded_once(faber, server):
    bulk = club_of(faber, "Ann", "Bo")
    reminder = of(bulk, isReminder=True)
    assert_error(error_of(faber.post, "/mailings", reminder), 409, "nobody_to_mail")
    faber.post("/mailings", of(bulk))
    worker_mails()
    taken = MailingRow.objects.order_by("number").first().credential
    Connection.objects.filter(pk=taken.connection_id).update(state="Connected")
    error = error_of(faber.post, "/mailings", reminder | {"text": "Hurry up."})
    assert_error(error, 400, "invalid_request")
    assert list(error.body["errors"]) == ["text"]
    made = faber.post("/mailings", reminder)
    assert made["isReminder"] and made["counts"] == {"Waiting": 1}
    worker_mails()
    assert server.addresses[2:] == ["bo@club.example"]
    assert_error(error_of(faber.post, "/mailings", reminder), 409, "nobody_to_mail")
    assert AuditEntry.objects.filter(action="bulk.reminded").count() == 1


def test_a_full_day_and_an_absent_server_are_told(faber, server, settings):
    settings.ORGANIZATION_MAILS_A_DAY = 1
    path = f"/mailings/{faber.post('/mailings', of(club_of(faber, 'Ann', 'Bo')))['mailingId']}"
    worker_mails()
    assert faber.get(path)["waitsFor"] == "daily_limit"
    assert "waitsFor" not in faber.post(f"{path}/stop")


def test_an_answer_that_never_came_is_told_apart(faber, server):
    server.at_data = {"ann@club.example": ""}
    made = faber.post("/mailings", of(club_of(faber, "Ann")))
    worker_mails()
    [error] = faber.get(f"/mailings/{made['mailingId']}")["errors"]
    assert (error["state"], error["code"]) == ("Unknown", "outcome_unknown")


def test_the_end_of_a_mailing_is_an_event(faber, server):
    first, second = club_of(faber, "Ann", "Bo"), club_of(faber, "Cy")
    server.refused = {"bo@club.example": "550 unknown"}
    made = faber.post("/mailings", of(first))["mailingId"]
    worker_mails()
    worker_mails()
    stopped = faber.post("/mailings", of(second))["mailingId"]
    faber.post(f"/mailings/{stopped}/stop")
    told = [one["body"] for one in faber.get("/events", messageType="mailing_finished")]
    assert [(one["object_id"], one["state"], one["data"]) for one in told] == [
        (made, "Done", {"bulk_id": str(first.pk), "mails": 2, "sent": 1}),
        (stopped, "Stopped", {"bulk_id": str(second.pk), "mails": 1, "sent": 0}),
    ]
    assert {one["object_type"] for one in told} == {"mailing"}


def test_reasons_go_page_by_page(faber, server, monkeypatch):
    monkeypatch.setattr("agency.mails.api.MAX_SHOWN", 1)
    server.refused = {f"{one}@club.example": "550 no" for one in ("ann", "bo")}
    made = faber.post("/mailings", of(club_of(faber, "Ann", "Bo")))
    worker_mails()
    path = f"/mailings/{made['mailingId']}"
    first = faber.send("get", path)
    assert [one["row"] for one in first.json()["errors"]] == [2]
    assert "errorsAfter=2" in first["Link"]
    last = faber.send("get", f"{path}?errorsAfter=2")
    assert [one["row"] for one in last.json()["errors"]] == [3]
    assert "Link" not in last


def test_mailings_are_listed_of_one_bulk_too(faber, server):
    first, second = club_of(faber, "Ann"), club_of(faber, "Bo")
    made = [faber.post("/mailings", of(one))["mailingId"] for one in (first, second)]
    assert [one["mailingId"] for one in faber.get("/mailings")] == made[::-1]
    [one] = walk(faber, "/mailings", bulkId=first.pk)
    assert one["mailingId"] == made[0] and one["bulkId"] == str(first.pk)
    refused = faber.send("get", "/mailings?bulkId=first")
    assert_error(refused, 400, "invalid_request")


def test_another_organization_sees_and_stops_none(faber, acme, server):
    bulk = club_of(faber, "Ann")
    made = faber.post("/mailings", of(bulk))["mailingId"]
    assert acme.get("/mailings") == []
    for call in (
        lambda: acme.get(f"/mailings/{made}"),
        lambda: acme.post(f"/mailings/{made}/pause"),
        lambda: acme.post(f"/mailings/{made}/resume"),
        lambda: acme.post(f"/mailings/{made}/stop"),
        lambda: acme.post("/mailings", of(bulk)),
        lambda: acme.post("/mailings/preview", of(bulk)),
    ):
        assert_error(error_of(call), 404, "not_found")
    reader = with_scopes(faber, Scope.READ)
    assert reader.get(f"/mailings/{made}")["state"] == "Running"
    error = error_of(reader.post, f"/mailings/{made}/stop")
    assert_error(error, 403, "missing_scope")


def test_a_call_that_ends_on_the_way_leaves_nothing_and_can_be_repeated(
    faber, server, monkeypatch
):
    bulk = club_of(faber, "Ann", "Bo")
    monkeypatch.setattr("agency.mails.mailings.CHUNK_ROWS", 1)
    stored, store_mails = [], mailings.store_mails

    def store_one_and_exit(*given):
        stored.append(store_mails(*given))
        exit()

    for name, end in (
        ("agency.mails.mailings.store_mails", store_one_and_exit),
        ("tenants.audit.record", lambda *given, **named: exit()),
    ):
        with monkeypatch.context() as patched, pytest.raises(SystemExit):
            patched.setattr(name, end)
            faber.send("post", "/mailings", of(bulk))
        assert faber.get("/mailings") == [] and not MailingRow.objects.exists()
    assert stored == [1]
    assert faber.post("/mailings", of(bulk))["counts"] == {"Waiting": 2}
    worker_mails()
    assert server.addresses == ["ann@club.example", "bo@club.example"]
