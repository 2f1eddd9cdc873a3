"""Issue many: files of offers, their errors, and what becomes of each row."""

import csv
import io
import json
from datetime import date, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from credentials.bulk import checking, issuing, results, retention
from credentials.models import Bulk, BulkRow, Credential, Schema
from tenants import vault
from tenants.models import ApiKey, AuditEntry
from tests.credentials.bulk.people import (
    json_lines,
    read,
    read_result,
    send_file,
    sent,
    worker_issues,
)
from tests.credentials.bulk.workbooks import workbook
from tests.support.errors import assert_error
from tests.support.people import ApiError
from tests.support.races import at_once, is_waited_for, wait_until
from tests.support.steps import step
from webhooks.models import Delivery, Event

CLAIMS = {"year": {"type": "integer"}}
OFFICE = {"url": "https://office.example"}


@step
def licence(faber):
    return faber.defines("name", "year", claims=CLAIMS)


def error_of(response):
    return response.json()["code"]


def test_each_row_is_offered_to_its_connection_wallet_or_by_link(faber, licence):
    alice, bob = faber.hosts("Alice"), faber.hosts("Bob")
    to_alice = alice.known_as(faber)
    bob.known_as(faber)
    text = (
        "year;name;connectionId;walletId\n"
        f'2001;"Alice; née Smith";{to_alice};\n'
        f"2002;Bob;;{bob.wallet_id}\n"
        "2003;Carol;;\n"
    )
    bulk = sent(faber, licence, text, automaticIssuance="true")
    assert (bulk["state"], bulk["counts"]) == ("Running", {"Waiting": 3})
    worker_issues()
    [offer] = alice.get("/credentials")
    assert offer["values"] == {"name": "Alice; née Smith", "year": "2001"}
    alice.post(f"/credentials/{offer['credentialId']}")
    [offer] = bob.get("/credentials")
    assert offer["values"]["name"] == "Bob" and offer["state"] == "Offered"
    found = read(faber, bulk)
    assert found["state"] == "Done" and found["finishedAtUtc"]
    assert found["counts"] == {"Issued": 1, "Offered": 2}
    first, second, third = read_result(faber, bulk)
    assert first[:2] == ["2", "Issued"] and second[:2] == ["3", "Offered"]
    assert first[3] == second[3] == ""
    link = faber.get(f"/credentials/{third[2]}")["offerUrl"]
    assert third == ["4", "Offered", third[2], link, "", ""]


def test_a_workbook_is_taken_as_a_file_of_text_is(faber):
    definition = faber.defines("name", "born", claims={"born": {"type": "date"}})
    rows = workbook(["name", "born"], ["Ann", date(1990, 5, 17)], ["Bo", "1.2.1991"])
    sent_as = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    bulk = sent(faber, definition, rows, sent_as, dateForm="dayFirst")
    assert bulk["counts"] == {"Waiting": 2}
    worker_issues()
    born = sorted(one["values"]["born"] for one in faber.get("/credentials"))
    assert born == ["19900517", "19910201"]
    refused = send_file(faber, definition, b"PK", sent_as)
    assert_error(refused, 400, "malformed_workbook")


def test_the_result_gives_back_names_and_values(faber, licence):
    """To who may see values, and as long as there are some."""
    alice = faber.hosts("Alice")
    text = (
        "name,year,walletId,recipientName\n"
        "Ann,2001,,Ann of office 3\n"
        f"Bo,2002,{alice.wallet_id},\n"
        f"Cy,2003,{alice.wallet_id},Cy\n"
        "Di,soon,,Di\n"
    )
    alice.known_as(faber)
    bulk = sent(faber, licence, text)
    worker_issues()
    path = f"/credentials/bulk/{bulk['bulkId']}/result"
    response = faber.send("get", path)
    found = list(
        csv.DictReader(b"".join(response.streaming_content).decode().splitlines())
    )
    shown = [[one[name] for name in ("recipientName", "name", "year")] for one in found]
    assert shown == [
        ["Ann of office 3", "Ann", "2001"], ["", "Bo", "2002"], ["Cy", "Cy", "2003"],
        ["", "", ""],
    ]  # fmt: skip
    named = [one.get("recipientName") for one in faber.get("/credentials")]
    assert sorted(filter(None, named)) == ["Ann of office 3", "Cy"]
    assert not BulkRow.objects.filter(status="Offered").exclude(recipient_name=None)
    stored = Bulk.objects.get()
    assert list(results.read_results(stored, False))[0] == [list(results.COLUMNS)]
    Credential.objects.update(values=None)
    assert ",2001" not in "".join(results.write_results(stored))


def test_who_reads_values_in_a_result_is_recorded(faber, licence):
    """Also if no row has a link."""
    to = faber.hosts("Alice").known_as(faber)
    bulk = sent(faber, licence, f"name,year,connectionId\nAnn,2001,{to}\n")
    worker_issues()
    AuditEntry.objects.filter(action="values.read").delete()
    ApiKey.objects.update(values_read_on={})
    read_result(faber, bulk)
    assert AuditEntry.objects.get(action="values.read").details["values"]


def test_a_name_is_bounded_and_sealed(faber, licence):
    text = f"name,year,recipientName\nAnn,2001,{'x' * 201}\nBo,2002,Secret Name\n"
    bulk = sent(faber, licence, text)
    assert bulk["counts"] == {"Failed": 1, "Waiting": 1}
    row = BulkRow.objects.get(status="Waiting")
    assert row.recipient_name and b"Secret" not in bytes(row.recipient_name)


def test_a_file_names_its_encoding(faber, licence):
    data = "name,year\nJosé,2001\n".encode("windows-1252")
    refused = send_file(faber, licence, data)
    assert_error(refused, 400, "malformed_csv")
    assert "charset" in refused.json()["message"]
    sent(faber, licence, data, "text/csv; charset=Windows-1252")
    worker_issues()
    [offer] = faber.get("/credentials")
    assert offer["values"]["name"] == "José"
    refused = send_file(faber, licence, data, "text/csv; charset=utf-7")
    assert_error(refused, 400, "malformed_csv")


def test_a_file_for_a_definition_of_nobody_is_404(faber):
    refused = send_file(faber, {"definitionId": "none"}, ["Alice,2001"])
    assert_error(refused, 404, "not_found")


def test_an_error_is_short_however_long_the_names_are(faber, licence):
    Schema.objects.update(attribute_names=[f"{n}".rjust(250, "x") for n in range(100)])
    rows = json_lines({"credentialValues": {"y" * 50_000: ""}})
    bulk = sent(faber, licence, rows, "application/x-ndjson")
    [error] = read(faber, bulk)["errors"]
    assert error["column"] == "credentialValues" and len(error["message"]) == 500
    assert error["message"].endswith("…")


def test_an_id_with_a_nul_is_an_error_of_its_row(faber, licence):
    text = "name,year,connectionId,walletId\nAl,1,a\x00b,\nBo,2,,c\x00\nCy,3,,\n"
    bulk = sent(faber, licence, text)
    assert bulk["counts"] == {"Failed": 2, "Waiting": 1}
    assert [one["row"] for one in bulk["errors"]] == [2, 3]


def test_rows_may_be_json_lines_or_a_json_array(faber, licence):
    rows = [{"credentialValues": {"name": "Al", "year": str(n)}} for n in (1, 2)]
    lines = json_lines(*rows)
    of_lines = sent(faber, licence, f"{lines}\n\n", "application/x-ndjson")
    of_array = sent(faber, licence, json.dumps(rows), "application/json")
    worker_issues()
    assert read(faber, of_lines)["counts"] == {"Offered": 2}
    assert read(faber, of_array)["counts"] == {"Offered": 2}


def test_errors_name_row_column_and_code_and_stop_no_other_row(faber, licence):
    text = "name,year,connectionId\nAl,x,\nBo,2001,nobody\nCy,1\nDi,2,\n,3,\n"
    bulk = sent(faber, licence, text)
    assert bulk["counts"] == {"Waiting": 2, "Failed": 3}
    assert [(e["row"], e.get("column"), e["code"]) for e in bulk["errors"]] == [
        (2, "year", "not_an_integer"),
        (3, "connectionId", "not_found"),
        (4, None, "malformed_csv"),
    ]
    worker_issues()
    assert read(faber, bulk)["counts"] == {"Offered": 2, "Failed": 3}
    assert [line[4] for line in read_result(faber, bulk)] == [
        "year: not_an_integer", "connectionId: not_found", "malformed_csv", "", "",
    ]  # fmt: skip


def test_json_rows_are_checked_as_cells(faber, licence):
    rows = [
        "{",
        "[]",
        '{"credentialValues": {"name": "Al"}}',
        '{"credentialValues": {"name": 1, "year": "1"}}',
        '{"credentialValues": {"name": "Al", "year": "1"}, "connectionId": []}',
    ]
    bulk = sent(faber, licence, "\n".join(rows), "application/x-ndjson")
    assert [(e.get("column"), e["code"]) for e in bulk["errors"]] == [
        (None, "malformed_json"),
        (None, "invalid_request"),
        ("credentialValues", "wrong_attributes"),
        ("name", "invalid_request"),
        ("connectionId", "invalid_request"),
    ]


UNREADABLE = [
    (b"\n", "malformed_csv"),
    (b"\xff\xfe", "malformed_csv"),
    (b"name\nAl", "wrong_attributes"),
    (b"name,year,name\nAl,1,Bo", "wrong_attributes"),
    (b"name,year\n", "no_rows"),
    (b'name,year\n"Al,1', "malformed_csv"),
    (b'name,year\nAl,1\nBo,2\nCy,3\nDi,"4"x', "malformed_csv"),
    (b"name,year\n" + b"Al,1\n" * 5, "too_many_rows"),
]


def test_each_credential_gets_the_notes_of_its_row(faber, licence):
    values = {"name": "Al", "year": "1"}
    notes = {"reference": "order 1", "metadata": {"desk": "3"}}
    rows = [{"credentialValues": values} | notes, {"credentialValues": values}]
    of_lines = sent(faber, licence, json_lines(*rows), "application/x-ndjson")
    of_csv = sent(faber, licence, "name,year,reference\nBo,2,order 2\nCy,3,\n")
    waiting = BulkRow.objects.get(reference="order 1")
    assert vault.unseal(waiting, "metadata") == {"desk": "3"}
    worker_issues()
    [offered] = faber.get("/credentials?reference=order 1")
    assert {name: offered[name] for name in notes} == notes
    assert len(faber.get("/credentials?reference=order 2")) == 1
    assert [line[5] for line in read_result(faber, of_lines)] == ["order 1", ""]
    assert [line[5] for line in read_result(faber, of_csv)] == ["order 2", ""]
    assert not BulkRow.objects.exclude(metadata=None, reference="").exists()


def test_wrong_notes_are_errors_of_their_row(faber, licence):
    pairs = {str(number): "x" for number in range(21)}
    wrong = (
        {"reference": "x" * 201}, {"reference": []}, {"metadata": {"": "x"}},
        {"metadata": {"desk": "a\nb"}}, {"metadata": pairs},
    )  # fmt: skip
    values = {"credentialValues": {"name": "Al", "year": "1"}}
    rows = json_lines(*(values | notes for notes in wrong))
    bulk = sent(faber, licence, rows, "application/x-ndjson")
    found = [(e["row"], e["column"], e["code"]) for e in bulk["errors"]]
    assert found == [
        (number, next(iter(notes)), "invalid_request")
        for number, notes in enumerate(wrong, 1)
    ]
    assert not BulkRow.objects.filter(values__isnull=False).exists()


def test_a_failed_row_keeps_its_reference_alone(faber, licence):
    notes = {"reference": "order 1", "metadata": {"desk": "3"}}
    rows = json_lines({"credentialValues": {"name": "Al", "year": "x"}} | notes)
    bulk = sent(faber, licence, rows, "application/x-ndjson")
    assert [line[4:] for line in read_result(faber, bulk)] == [
        ["year: not_an_integer", "order 1"]
    ]
    assert BulkRow.objects.get().metadata is None


def test_an_attribute_may_have_the_name_of_another_column(faber):
    definition = faber.defines("reference", "connectionId")
    bulk = sent(faber, definition, "reference,connectionId\nAl,Bo\n")
    worker_issues()
    [[_, _, credential_id, _, _, reference]] = read_result(faber, bulk)
    offered = faber.get(f"/credentials/{credential_id}")
    assert offered["values"] == {"reference": "Al", "connectionId": "Bo"}
    assert reference == ""


def test_an_unreadable_file_leaves_nothing(faber, licence, subtests, monkeypatch):
    monkeypatch.setattr(checking, "MAX_ROWS", 4)
    monkeypatch.setattr(checking, "CHUNK_ROWS", 2)
    for data, code in UNREADABLE:
        with subtests.test(str(data)):
            assert_error(send_file(faber, licence, data), 400, code)
            assert not Bulk.objects.exists() and not BulkRow.objects.exists()


def test_a_file_may_be_as_long_as_the_setting_says(faber, licence, settings):
    settings.MAX_BULK_BYTES = settings.MAX_BODY_BYTES + 1000
    long = "name,year\n" + "x" * settings.MAX_BODY_BYTES
    assert error_of(send_file(faber, licence, long)) != "body_too_large"
    assert_error(send_file(faber, licence, long * 2), 413, "body_too_large")


def test_a_dry_run_stores_nothing(faber, licence):
    found = sent(faber, licence, ["Al,x", "Bo,1"], dryRun="true")
    assert found["counts"] == {"Waiting": 1, "Failed": 1} and "bulkId" not in found
    assert found["errors"][0]["row"] == 2
    assert not Bulk.objects.exists() and not BulkRow.objects.exists()


def test_other_columns_are_ignored_and_named(faber, licence):
    response = send_file(faber, licence, "name,e-mail,year\nAl,a@b.example,1\n")
    assert response["X-Ignored-Members"] == "e-mail"
    assert response.json()["counts"] == {"Waiting": 1}


def test_values_are_sealed_and_erased_once_they_are_offered(faber, licence):
    sent(faber, licence, ["Ada Lovelace-4711,1", "Bo,x"])
    waiting, failed = BulkRow.objects.order_by("number")
    assert b"4711" not in bytes(waiting.values) and failed.values is None
    worker_issues()
    assert BulkRow.objects.exclude(values=None).count() == 0


def test_a_paused_bulk_waits_until_it_is_resumed(faber, licence):
    bulk = sent(faber, licence, ["Al,1"])
    path = f"/credentials/bulk/{bulk['bulkId']}"
    assert faber.post(f"{path}/pause")["state"] == "Paused"
    assert_error(faber.send("post", f"{path}/pause"), 409, "wrong_state")
    worker_issues()
    assert read(faber, bulk)["counts"] == {"Waiting": 1}
    assert faber.post(f"{path}/resume")["state"] == "Running"
    worker_issues()
    assert read(faber, bulk)["state"] == "Done"
    assert_error(faber.send("post", f"{path}/resume"), 409, "wrong_state")


def test_failed_rows_are_tried_again_when_they_may_succeed(faber, licence):
    alice = faber.hosts("Alice")
    text = f"name,year,walletId\nAl,1,{alice.wallet_id}\nBo,x,\n"
    bulk = sent(faber, licence, text)
    worker_issues()
    assert read(faber, bulk)["counts"] == {"Failed": 2}
    retry = f"/credentials/bulk/{bulk['bulkId']}/retry"
    alice.known_as(faber)
    assert faber.post(retry)["counts"] == {"Waiting": 1, "Failed": 1}
    worker_issues()
    assert read(faber, bulk)["counts"] == {"Offered": 1, "Failed": 1}
    assert_error(faber.send("post", retry), 409, "nothing_to_retry")
    assert len(alice.get("/credentials")) == 1


def test_a_done_bulk_is_not_tried_again_beside_too_many(faber, licence, monkeypatch):
    alice = faber.hosts("Alice")
    text = f"name,year,walletId\nAl,1,{alice.wallet_id}\n"
    done = sent(faber, licence, text)
    worker_issues()
    monkeypatch.setattr("credentials.models.bulk.MAX_UNFINISHED", 1)
    other = sent(faber, licence, ["Bo,2"])
    retry = f"/credentials/bulk/{done['bulkId']}/retry"
    assert_error(faber.send("post", retry), 409, "too_many_bulks")
    assert read(faber, done)["state"] == "Done"
    worker_issues()
    assert read(faber, other)["state"] == "Done"
    assert faber.post(retry)["state"] == "Running"


def test_a_row_that_cannot_be_offered_any_more_fails_alone(faber, licence):
    gone = faber.hosts("Alice").known_as(faber)
    bulk = sent(faber, licence, f"name,year,connectionId\nAl,1,{gone}\nBo,2,\n")
    faber.delete(f"/connections/{gone}")
    worker_issues()
    found = read(faber, bulk)
    assert found["counts"] == {"Failed": 1, "Offered": 1}
    assert [error["code"] for error in found["errors"]] == ["not_found"]


def test_a_connection_that_was_ended_is_an_error_of_its_cell(faber, licence):
    ended = faber.hosts("Alice").known_as(faber)
    faber.post(f"/connections/{ended}/hangup")
    text = f"name,year,connectionId\nAl,1,{ended}\n"
    for query in ({}, {"dryRun": "true"}):
        bulk = sent(faber, licence, text, **query)
        assert bulk["counts"] == {"Failed": 1}
        [error] = bulk["errors"]
        assert (error["column"], error["code"]) == ("connectionId", "connection_gone")


def test_errors_are_read_page_by_page(faber, licence):
    bulk = sent(faber, licence, [f"Al,x{n}" for n in range(250)])
    path, rows = f"/credentials/bulk/{bulk['bulkId']}", []
    while path:
        response = faber.send("get", path)
        rows += [error["row"] for error in response.json()["errors"]]
        link = response.get("Link", "")
        path = link.partition(">")[0].removeprefix("<http://127.0.0.1:8000") or None
    assert rows == list(range(2, 252))


def test_organizations_and_their_bulks_take_turns(faber, acme, licence, monkeypatch):
    monkeypatch.setattr(issuing, "ROWS_PER_TURN", 2)
    large = sent(faber, licence, ["Al,1"] * 6)
    small = sent(faber, licence, ["Bo,2"] * 2)
    other = sent(acme, acme.defines("name", "year"), ["Cy,3"] * 2)
    turns, take_turn = [], issuing.take_turn

    def recorded(bulk):
        turns.append(str(bulk.pk))
        take_turn(bulk)

    monkeypatch.setattr(issuing, "take_turn", recorded)
    worker_issues()
    first, second, third = (bulk["bulkId"] for bulk in (large, small, other))
    assert sorted(turns[:3]) == sorted([first, second, third])
    assert turns.count(first) == 3


def test_an_organization_has_one_worker_at_a_time(faber, acme, licence):
    for _ in range(2):
        sent(faber, licence, ["Al,1"])
    sent(acme, acme.defines("name", "year"), ["Cy,3"])
    claimed = [Bulk.claim_next() for _ in range(3)]
    assert {bulk.tenant for bulk in claimed if bulk} == {faber.tenant, acme.tenant}
    assert claimed[2] is None


def test_a_worker_that_lost_its_lease_offers_and_tells_nothing_twice(faber, licence):
    bulk = sent(faber, licence, ["Al,1", "Bo,2"])
    paused = Bulk.claim_next()
    rows = list(paused.rows.order_by("number"))
    worker_issues()
    for row in rows:
        issuing.offer_row(paused, row)
    paused.end_turn()
    assert read(faber, bulk)["state"] == "Done"
    assert Credential.objects.count() == 2
    assert Event.objects.filter(type="bulk_finished").count() == 1


def test_there_is_a_limit_of_rows_that_are_kept(faber, licence, monkeypatch):
    monkeypatch.setattr("credentials.models.bulk.MAX_KEPT_ROWS", 2)
    bulk = sent(faber, licence, ["Al,1", "Bo,2"])
    worker_issues()
    assert_error(send_file(faber, licence, ["Al,1"]), 409, "too_many_bulks")
    faber.delete(f"/credentials/bulk/{bulk['bulkId']}")
    sent(faber, licence, ["Al,1"])


def test_files_sent_at_once_do_not_pass_the_limit(faber, licence, monkeypatch):
    def save_late(bulk, **options):
        if "update_fields" not in options:  # it is new
            counted.append(bulk)  # without the lock, all count before one has saved
            wait_until(lambda: is_waited_for() or len(counted) == 4)
        save(bulk, **options)

    save, counted = Bulk.save, []
    monkeypatch.setattr(Bulk, "save", save_late)
    monkeypatch.setattr("credentials.models.bulk.MAX_UNFINISHED", 1)
    answers = at_once(*[lambda: send_file(faber, licence, ["Al,1"])] * 4)
    refused = [error_of(one) for one in answers if one.status_code != 200]
    assert refused == ["too_many_bulks"] * 3 and Bulk.objects.count() == 1


def test_a_file_sent_again_with_its_key_is_one_bulk(faber, licence):
    rows = [{"credentialValues": {"name": "Al", "year": "1"}}]
    path = f"/credentials/bulk?definitionId={licence['definitionId']}"
    key = {"Idempotency-Key": "k1"}
    first = faber.call("post", path, rows, **key)
    assert faber.call("post", path, rows, **key) == first
    [listed] = faber.get("/credentials/bulk")
    assert listed["bulkId"] == first["bulkId"]


def test_a_formula_in_the_result_is_text(faber):
    definition = faber.defines("=cmd|' /C calc'!A0", "year", claims=CLAIMS)
    rows = [{"credentialValues": {"=cmd|' /C calc'!A0": 1, "year": "1"}}]
    bulk = sent(faber, definition, json.dumps(rows), "application/json")
    [line] = read_result(faber, bulk)
    assert line[4].startswith("'=cmd")


def test_a_formula_in_a_file_is_text_on_its_way_in_and_out(faber, licence):
    formulas = [f"{first}HYPERLINK(1)" for first in ("=", "+", "-", "@", "\t=", "\r=")]
    rows = [[one, "1", f"{one} Ann"] for one in formulas]
    cells = io.StringIO()
    csv.writer(cells).writerows([["name", "year", "recipientName"], *rows])
    bulk = sent(faber, licence, cells.getvalue())
    worker_issues()
    offered = {one["values"]["name"].strip() for one in faber.get("/credentials")}
    assert offered == {one.strip() for one in formulas}
    response = faber.send("get", f"/credentials/bulk/{bulk['bulkId']}/result")
    text = b"".join(response.streaming_content).decode()
    found = list(csv.DictReader(io.StringIO(text, newline="")))
    shown = [row[name] for row in found for name in ("name", "recipientName")]
    assert len(shown) == 2 * len(formulas)
    assert all(one.startswith("'") and "HYPERLINK" in one for one in shown), shown


def test_the_result_is_read_in_as_many_queries_however_many_rows(faber, licence):
    alice = faber.hosts("Alice")
    to = alice.known_as(faber)
    rows = [f"A{number},{number},{to}" for number in range(5)]
    text = "\n".join(["name,year,connectionId", *rows, "By link,6,"])
    sent(faber, licence, text)
    worker_issues()
    bulk = Bulk.started(faber.tenant).get()
    with CaptureQueriesContext(connection) as captured:
        lines = list(results.write_results(bulk))
    assert len(lines) == 2 and "/i/" in lines[1]
    assert len(captured) == 2, captured.captured_queries


def test_old_bulks_are_deleted_and_what_they_offered_stays(faber, licence):
    bulk = sent(faber, licence, ["Al,1", "Bo,x"])
    unfinished = sent(faber, licence, ["Cy,1"])
    Bulk.objects.filter(pk=unfinished["bulkId"]).update(started_at=None)
    worker_issues()
    assert retention.delete_old_bulks() == 0
    Bulk.objects.update(created_at=timezone.now() - timedelta(hours=2))
    assert retention.delete_old_bulks() == 2
    Bulk.objects.update(updated_at=timezone.now() - retention.KEPT)
    assert retention.delete_old_bulks() == 3
    with pytest.raises(ApiError, match="not_found"):
        read(faber, bulk)
    assert Credential.objects.count() == 1


def test_the_end_is_an_event_each_time_with_counts(faber, licence):
    wanted = {"messageTypes": ["bulk_finished"]}
    hook = faber.post("/webhooks", OFFICE | wanted)
    usual = faber.post("/webhooks", OFFICE)
    alice = faber.hosts("Alice")
    text = f"name,year,walletId\nAl,1,{alice.wallet_id}\nBo,x,\nCy,3,\n"
    bulk = sent(faber, licence, text)
    worker_issues()
    alice.known_as(faber)
    faber.post(f"/credentials/bulk/{bulk['bulkId']}/retry")
    worker_issues()
    told = faber.get("/events", messageType="bulk_finished")
    bodies = [one["body"] for one in told]
    common = {"definition_id": licence["definitionId"], "rows": 3}
    assert [body["data"] for body in bodies] == [
        common | {"offered": 1, "failed": 2},
        common | {"offered": 2, "failed": 1},
    ]
    assert [body["sequence"] for body in bodies] == [1, 2]
    assert {body["object_id"] for body in bodies} == {bulk["bulkId"]}
    assert {body["state"] for body in bodies} == {"Done"}
    sends = Delivery.objects.filter(event__type="bulk_finished")
    assert sends.filter(webhook=hook["id"]).count() == 2
    assert not sends.filter(webhook=usual["id"]).exists()


def test_a_bulk_at_rest_is_deleted_and_what_it_offered_stays(faber, acme, licence):
    bulk = sent(faber, licence, ["Al,1", "Bo,x"])
    path = f"/credentials/bulk/{bulk['bulkId']}"
    assert_error(faber.send("delete", path), 409, "wrong_state")
    worker_issues()
    assert_error(acme.send("delete", path), 404, "not_found")
    faber.delete(path)
    assert_error(faber.send("get", path), 404, "not_found")
    assert_error(faber.send("delete", path), 404, "not_found")
    assert not Bulk.objects.exists() and not BulkRow.objects.exists()
    assert Credential.objects.count() == 1
    assert AuditEntry.objects.filter(action="bulk.deleted").count() == 1


def test_a_bulk_deleted_in_a_turn_is_offered_no_further(faber, licence, monkeypatch):
    path = f"/credentials/bulk/{sent(faber, licence, ['Al,1', 'Bo,2'])['bulkId']}"
    turn = Bulk.claim_next()
    first, second = turn.rows.order_by("number")
    issuing.offer_row(turn, first)
    faber.post(f"{path}/pause")
    monkeypatch.setattr(retention, "DISCARD_SECONDS", -1)
    faber.delete(path)
    # What was not deleted in time is neither shown nor offered, and goes later.
    assert faber.get("/credentials/bulk") == [] and Bulk.objects.count() == 1
    turn.end_turn()
    worker_issues()
    assert not Event.objects.filter(type="bulk_finished").exists()
    Bulk.objects.update(created_at=timezone.now() - timedelta(hours=2))
    retention.delete_old_bulks()
    issuing.offer_row(turn, second)
    assert not Bulk.objects.exists() and Credential.objects.count() == 1


def test_a_deleted_credential_is_counted_as_deleted(faber, licence):
    bulk = sent(faber, licence, ["Al,1"])
    worker_issues()
    [line] = read_result(faber, bulk)
    faber.delete(f"/credentials/delete/{line[2]}")
    assert read(faber, bulk)["counts"] == {"Deleted": 1}
    assert read_result(faber, bulk) == [["2", "Deleted", "", "", "", ""]]
