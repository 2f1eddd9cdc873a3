"""Calls with an organization's key are logged, and their log stays small."""

import logging
from datetime import timedelta
from unittest.mock import Mock
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.database.uuids import smallest_uuid7, unix_milliseconds
from core.telemetry.metrics import registry
from core.work import retention
from tenants import audit, request_log, tasks
from tenants.lifecycle import erasure
from tenants.lifecycle.provisioning import remove_organization
from tenants.models import LoggedRequest, Tenant
from tests.factories import LoggedRequestFactory
from tests.support.request_log import written

__all__ = ["written"]
pytestmark = pytest.mark.django_db(transaction=True)


def unlogged(reason):
    labels = {"reason": reason}
    return registry.get_sample_value("agency_unlogged_requests_total", labels) or 0


def facts(row):
    return row.method, row.route, row.status, row.error_code


def add_rows(organization, number, days=0):
    """Rows of so many days ago, written without a call."""
    key = organization.tenant.keys.first()
    first = unix_milliseconds(timezone.now() - timedelta(days=days))
    for index in range(number):
        # In time, and of this organization.
        pk = UUID(int=smallest_uuid7(first + index - number).int | key.pk.int >> 48)
        LoggedRequestFactory(id=pk, tenant=organization.tenant, key=key)


def test_a_call_is_logged_by_its_route_and_result(faber, written):
    with CaptureQueriesContext(connection) as found:
        connection_id = faber.invites(name="Alice")["connectionId"]
    assert found.captured_queries, "none of them is the log's"
    assert "loggedrequest" not in str(found.captured_queries)
    faber.get(f"/credentials/v1/connections/{connection_id}", secret="in-the-query")
    refused = faber.send("get", "/connections/nobody")
    rows = written()
    assert [facts(row) for row in rows] == [
        ("POST", "/connections", 200, ""),
        ("GET", "/credentials/v1/connections/{connectionId}", 200, ""),
        ("GET", "/connections/{connectionId}", 404, "not_found"),
    ]
    assert rows[2].request_id == refused["X-Request-Id"]
    token = faber.tenant.keys.get(kind="access_token")
    assert {(row.tenant, row.key) for row in rows} == {(faber.tenant, token)}
    assert {row.address for row in rows} == {"127.0.0.1"}
    everything = str(list(LoggedRequest.objects.values()))
    for hidden in (connection_id, "in-the-query", "nobody", faber.made.access_token):
        assert hidden not in everything


def test_a_failure_of_ours_is_logged_with_its_code(faber, written, monkeypatch):
    def fail(*_):
        raise RuntimeError

    monkeypatch.setattr("connections.api.connections.Connections.list", fail)
    faber.send("get", "/connections")
    [row] = written()
    assert facts(row) == ("GET", "/connections", 500, "internal_error")


def test_calls_of_nobody_and_of_a_provider_are_not_logged(
    faber, provider, client, written
):
    client.get("/health")
    client.get("/connections")
    wrong = faber.headers | {"Authorization": "bearer agt_wrong"}
    client.get("/connections", headers=wrong)
    provider.get("/tenants")
    assert written() == []


def test_a_process_without_a_writer_notes_nothing(faber, settings, written):
    request_log._writer = None
    faber.get("/connections")
    assert written() == []
    settings.REQUEST_LOG_ROWS = 0
    request_log.start_writer()
    assert request_log._writer is None, "no row is wanted"


def test_a_busy_organization_leaves_room_for_the_others(
    faber, acme, written, monkeypatch
):
    monkeypatch.setattr(request_log, "MAX_WAITING_PER_TENANT", 2)
    before = unlogged("full")
    for _ in range(5):
        faber.get("/connections")
    acme.get("/connections")
    assert [row.tenant for row in written()] == [faber.tenant] * 2 + [acme.tenant]
    assert unlogged("full") == before + 3
    faber.get("/connections")  # the share is free again
    assert len(written()) == 4
    LoggedRequest.objects.all().delete()
    monkeypatch.setattr(request_log, "MAX_WAITING", 1)
    acme.get("/connections")
    faber.get("/connections")
    assert [row.tenant for row in written()] == [acme.tenant], "the bound for all"


def test_what_the_database_refuses_is_counted_and_the_next_is_written(
    faber, written, monkeypatch, caplog
):
    insert, before = request_log.INSERT, unlogged("database")
    monkeypatch.setattr(request_log, "ROWS_PER_STATEMENT", 2)
    monkeypatch.setattr(request_log, "INSERT", "SELECT 1/0")
    for _ in range(3):
        faber.get("/connections")
    with caplog.at_level(logging.WARNING):
        assert written() == []
    assert unlogged("database") == before + 3
    assert "3 calls are missing" in caplog.text
    monkeypatch.setattr(request_log, "INSERT", insert)
    for _ in range(5):
        faber.get("/connections")
    assert len(written()) == 5, "in several statements"


@pytest.mark.parametrize("column", ["deleted_at", "frozen_at"])
def test_an_organization_that_is_gone_gets_no_rows(faber, acme, written, column):
    faber.get("/connections")
    acme.get("/connections")
    Tenant.objects.filter(pk=faber.tenant.pk).update(**{column: timezone.now()})
    assert [row.tenant for row in written()] == [acme.tenant]


def test_the_log_of_a_deleted_organization_goes_with_it(faber, acme, written):
    add_rows(faber, 2)
    add_rows(acme, 1)
    remove_organization(faber.tenant, by=audit.SYSTEM)
    for _ in range(3):
        erasure.erase_due()
    assert [row.tenant for row in written()] == [acme.tenant]


def test_the_thread_writes_and_the_end_of_the_process_writes_the_rest(
    faber, settings, written, monkeypatch
):
    finalize = Mock()
    monkeypatch.setattr(request_log, "Finalize", finalize)
    # Only the end of the process makes the thread write.
    monkeypatch.setattr(request_log, "WRITE_SECONDS", 3600.0)
    request_log.start_writer()
    end, arguments = finalize.call_args.args[1], finalize.call_args.kwargs["args"]
    faber.get("/connections")
    assert not LoggedRequest.objects.exists()
    end(*arguments)
    assert LoggedRequest.objects.count() == 1
    assert not arguments[0].is_alive()


def test_only_the_newest_rows_of_each_organization_stay(
    faber, acme, settings, monkeypatch
):
    monkeypatch.setattr(retention, "BATCH_ROWS", 2)
    monkeypatch.setattr(retention, "PAUSE_SECONDS", 0)
    settings.REQUEST_LOG_ROWS = 3
    add_rows(faber, 8)
    add_rows(acme, 3)
    newest = list(LoggedRequest.objects.filter(tenant=faber.tenant).order_by("-pk"))
    tasks.delete_old_requests()
    left = LoggedRequest.objects.filter(tenant=faber.tenant).order_by("-pk")
    assert list(left) == newest[:3]
    assert LoggedRequest.objects.filter(tenant=acme.tenant).count() == 3


def test_old_rows_go_also_of_those_who_call_no_more(faber, settings, monkeypatch):
    monkeypatch.setattr(retention, "PAUSE_SECONDS", 0)
    add_rows(faber, 2, days=request_log.RETENTION_DAYS + 1)
    add_rows(faber, 1, days=request_log.RETENTION_DAYS - 1)
    tasks.delete_old_requests()
    assert LoggedRequest.objects.count() == 1
    settings.REQUEST_LOG_ROWS = 0
    tasks.delete_old_requests()
    assert not LoggedRequest.objects.exists(), "without a log all go"
