"""What Prometheus reads, who may read it, and what readiness says of the queues."""

import os
import re
import subprocess
import sys
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agency.ops import checks, database_server, health, monitoring, queues
from core.database.sessions import Kept
from core.net import http
from core.telemetry import metrics
from credentials.models import CredentialDefinition
from tests.factories import InboundMessageFactory
from tests.support.http_endpoints import answers, serving
from wallets.models import KeyRequest, SpareKey
from webhooks.delivery import claim
from webhooks.models import Delivery, Webhook

pytestmark = pytest.mark.django_db(transaction=True)
TOKEN = "for-prometheus-only"


@pytest.fixture
def scrape(settings):
    """The lines of an answer, as {series: value}."""
    settings.METRICS_TOKEN = TOKEN

    def read():
        answer = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        assert answer.status_code == 200
        lines = answer.content.decode().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    return read


def ago(**time):
    return timezone.now() - timedelta(**time)


def test_only_who_bears_the_token_may_read_and_without_one_there_is_no_such_page(
    settings,
):
    for header in ("", "Bearer", "Bearer ", "Bearer x", f"Basic {TOKEN}", "Bearer ü"):
        settings.METRICS_TOKEN = TOKEN
        answer = Client().get("/metrics", headers={"Authorization": header})
        assert answer.status_code == 401, header
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        settings.METRICS_TOKEN = ""
        answer = Client().get("/metrics", headers={"Authorization": header})
        assert answer.status_code == 404, header


def test_metrics_list_every_queue():
    assert {model._meta.label for model in queues.queue_models()} == {
        "connections.InboundMessage",
        "connections.OutboundMessage",
        "credentials.Bulk",
        "credentials.Mailing",
        "credentials.Publication",
        "sandbox.SimulatedAnswer",
        "tenants.Erasure",
        "verifications.WaitingAnswer",
        "webhooks.Delivery",
    }


def test_a_queue_tells_what_waits_is_due_and_was_given_up(faber, scrape, monkeypatch):
    for fields in ({}, {"due_at": ago(seconds=-60)}, {"status": "exhausted"}):
        given = {"tenant": faber.tenant, "due_at": ago(seconds=90)} | fields
        InboundMessageFactory(**given)
    found = scrape()
    label = '{queue="connections.InboundMessage"}'
    assert found[f"agency_queue_waiting{label}"] == 2
    assert found[f"agency_queue_due{label}"] == 1
    assert found[f"agency_queue_exhausted{label}"] == 1
    assert 90 <= found[f"agency_queue_oldest_seconds{label}"] < 100
    monkeypatch.setattr(queues, "MAX_COUNTED", 1)
    assert scrape()[f"agency_queue_waiting{label}"] == 1, "no more are counted"


def test_a_call_to_a_receiver_that_hangs_is_not_late(faber):
    faber.post("/webhooks", {"url": "https://office.example"})
    faber.hosts("Alice").known_as(faber)
    waiting = Delivery.objects.update(due_at=ago(seconds=90))
    assert waiting
    assert queues.read_queue(Delivery).oldest_seconds > 89
    Webhook.objects.update(strikes=5)
    queue = queues.read_queue(Delivery)
    assert (queue.oldest_seconds, queue.waiting) == (0, waiting)


def test_webhooks_are_counted_whose_receiver_is_the_limit(faber, scrape, settings):
    settings.WEBHOOK_THREADS = 16
    faber.post("/webhooks", {"url": "https://office.example"})
    for number in range(5):
        faber.hosts(f"Alice {number}").known_as(faber)
    assert Delivery.objects.update(due_at=ago(seconds=11)) >= 5
    assert scrape()["agency_webhooks_limited"] == 0, "nobody calls it: we are late"
    claim.claim_due(16, 4)
    assert scrape()["agency_webhooks_limited"] == 1
    Delivery.pending().filter(lease_owner=None).update(due_at=ago(seconds=9))
    assert scrape()["agency_webhooks_limited"] == 0, "they wait for a moment only"


def test_spare_keys_and_calls_that_wait_for_them_are_counted(faber, scrape):
    soon = timezone.now() + timedelta(minutes=1)
    for leased_until in (None, soon):
        SpareKey.objects.create(attributes=1, parts=b"", leased_until=leased_until)
    for served_at in (None, soon):
        KeyRequest.objects.create(
            organization=faber.tenant.pk, alive_until=soon, served_at=served_at
        )
    found = scrape()
    assert (found["agency_spare_keys"], found["agency_key_requests"]) == (1, 1)


def test_a_definition_whose_registry_is_nearly_full_wants_another(faber, scrape):
    definition = faber.defines("name", "year", supportRevocation=True)
    assert scrape()["agency_registries_wanted"] == 0
    row = CredentialDefinition.objects.get(definition_id=definition["definitionId"])
    row.registries.update(next_index=row.registries.get().size)
    assert scrape()["agency_registries_wanted"] == 1


def test_a_request_is_counted_without_ids(faber, scrape):
    before = scrape()
    connection_id = faber.invites()["connectionId"]
    for _ in range(2):
        faber.get(f"/connections/{connection_id}")
    found = scrape()
    labels = 'method="GET",route="connections/<str:connectionId>"'
    served = f'agency_requests_total{{{labels},status="200"}}'
    assert found[served] - before.get(served, 0) == 2
    assert f"agency_request_seconds_count{{{labels}}}" in found
    assert not [name for name in found if connection_id in name]


def test_a_request_that_asks_to_wait_does_not_count_as_slow(scrape):
    before = scrape()["agency_answer_seconds_count"]
    for headers, more in (({}, 1), ({"Prefer": "wait=0"}, 0)):
        Client().get("/connections", headers=headers)
        found = scrape()["agency_answer_seconds_count"]
        assert found - before == more
        before = found


def test_whatever_a_stranger_asks_for_is_one_series(scrape):
    before = len(scrape())
    for n in range(3):
        Client().generic(f"METHOD{n}", f"/nothing/{n}")
    found = scrape()
    series = 'agency_requests_total{method="other",route="none",status="404"}'
    assert found[series] >= 3
    assert len(found) - before < 20


def test_a_call_is_counted_by_the_class_of_its_status_or_its_code(scrape, settings):
    def calls():
        names, found = ("2xx", "address_refused"), scrape()
        series = 'agency_call_seconds_count{{outcome="{}"}}'
        return [found.get(series.format(name), 0) for name in names]

    settings.OUTGOING_ALLOW_LOOPBACK = True
    before = calls()
    with serving(answers(b"HTTP/1.1 204 No Content\r\n\r\n")) as here:
        http.post(f"http://{here}/", b"", "text/plain")
    with pytest.raises(http.CallFailed):
        http.post("http://10.0.0.1/", b"", "text/plain")
    assert calls() == [number + 1 for number in before]


def test_an_answer_costs_the_same_however_many_rows_wait(faber, monkeypatch):
    def statements():
        monkeypatch.setattr(database_server, "cached", None)
        with CaptureQueriesContext(connection) as captured:
            monitoring.database_metrics()
        return len(captured)

    few = statements()
    InboundMessageFactory.create_batch(20, tenant=faber.tenant, due_at=ago(seconds=1))
    assert statements() == few > 0


def test_a_query_that_takes_too_long_is_given_up(monkeypatch, scrape):
    monkeypatch.setattr(queues, "STATEMENT_TIMEOUT_MS", 50)

    def slow(model):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(5)")

    monkeypatch.setattr(queues, "read_queue", slow)
    found = scrape()
    assert found["agency_database_up"] == 0
    assert not [name for name in found if name.startswith("agency_queue")]


def test_a_late_queue_degrades_readiness_and_breaks_nothing(faber):
    assert Client().get("/health/ready").json()["queues"] == "ok"
    InboundMessageFactory(tenant=faber.tenant, due_at=ago(seconds=90))
    answer = Client().get("/health/ready")
    assert answer.status_code == 200
    late = "degraded: connections.InboundMessage is 90 s late"
    assert answer.json()["queues"] == late
    assert Client().get("/health").content == b"Healthy"


COUNTING = """
import django, sys
django.setup()
from core.telemetry import metrics
metrics.count_request("GET", "x", 200, 0.1)
print("counted", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def process(tmp_path):
    """Starts a process that counts one request and lives until its input ends."""
    started = []

    def start():
        variables = {
            "METRICS_TOKEN": TOKEN,
            "METRICS_ROOT": str(tmp_path),
            "DJANGO_SETTINGS_MODULE": "agency.settings",
        }
        one = subprocess.Popen(
            [sys.executable, "-c", COUNTING],
            env=os.environ | variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        started.append(one)
        assert one.stdout.readline() == b"counted\n"
        return one

    yield start
    for one in started:
        one.kill()
        one.communicate()


def requests_counted_in(folder, settings, monkeypatch):
    settings.METRICS_ROOT = str(folder)
    monkeypatch.setattr(metrics, "SHARED", True)
    registry = metrics.host_registry()
    labels = {"method": "GET", "route": "x", "status": "200"}
    return registry.get_sample_value("agency_requests_total", labels)


@pytest.mark.slow
def test_processes_count_together_and_go_on_after_a_kill(
    process, tmp_path, settings, monkeypatch
):
    first, _ = process(), process()
    assert requests_counted_in(tmp_path, settings, monkeypatch) == 2
    first.kill()
    first.wait()
    process()
    assert requests_counted_in(tmp_path, settings, monkeypatch) == 3
    assert sorted(path.name for path in tmp_path.glob("counter_*")) == [
        "counter_1.db",
        "counter_2.db",
    ]


@pytest.mark.slow
def test_a_process_that_cannot_write_its_figures_works_and_says_so(tmp_path):
    """Simulate a read-only folder.

    Permissions would not stop root, who may run the tests.
    """
    (tmp_path / "file").touch()
    variables = {
        "METRICS_TOKEN": TOKEN,
        "METRICS_ROOT": str(tmp_path / "file" / "metrics"),
        "DJANGO_SETTINGS_MODULE": "agency.settings",
    }
    ran = subprocess.run(
        [sys.executable, "-c", COUNTING],
        env=os.environ | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert (ran.returncode, ran.stdout) == (0, "counted\n"), ran.stderr
    [line] = [line for line in ran.stderr.splitlines() if "METRICS_ROOT" in line]
    assert (
        "counters of this process are not shared" in line and "Not a directory" in line
    )


def test_each_metric_says_what_it_counts(scrape):
    registered = [
        *metrics.registry.collect(),
        *monitoring.DatabaseCollector().collect(),
        *monitoring.HostCollector().collect(),
        *monitoring.ServiceCollector(database=True, broker=True).collect(),
    ]
    assert len(registered) > 30
    for family in registered:
        assert family.name.startswith("agency_"), family.name
        assert re.fullmatch(r"[A-Z1].{12,}\.", family.documentation), family.name


def test_readiness_judges_a_pooler_until_it_is_right_and_then_no_more(
    monkeypatch, caplog
):
    """A judgement opens connections, which a busy pooler may not give."""
    found = [Kept.STATEMENTS, Kept.TRANSACTIONS]
    monkeypatch.setattr(health, "pooler_is_right", False)
    monkeypatch.setattr(checks, "what_is_kept", lambda: found.pop(0))
    monkeypatch.setattr(checks, "has_limits", lambda: False)
    with pytest.raises(ImproperlyConfigured):
        health.check_database()
    health.check_database()
    health.check_database()
    [message] = caplog.messages
    assert "ALTER ROLE" in message
