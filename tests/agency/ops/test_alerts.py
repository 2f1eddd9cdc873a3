"""Every alert fires in the state that it is for, and no metric is made up.

promtool judges the rules, on what the product answers before and in that state.
"""

import json
import re
import subprocess
import time
from datetime import timedelta
from functools import partial
from unittest.mock import Mock, patch

import psycopg
import pytest
import yaml
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from agency.ops import (
    certificates,
    database_server,
    disk,
    health,
    heartbeats,
    monitoring,
    queues,
)
from agency.ops.backups import age
from agency.ops.models import Heartbeat
from core.database import refused_writes
from core.telemetry import metrics
from tests.factories import HeartbeatFactory, InboundMessageFactory
from tests.support.paths import DOCS, ROOT
from tests.support.tools import find_program
from wallets.models import KeyRequest

pytestmark = pytest.mark.django_db(transaction=True)
GRAFANA = ROOT / "deploy" / "grafana"
RULES = {
    rule["alert"]: rule
    for group in yaml.safe_load((GRAFANA / "alerts.yml").read_text())["groups"]
    for rule in group["rules"]
}
EXPRESSIONS = [
    target["expr"]
    for panel in json.loads((GRAFANA / "dashboard.json").read_text())["panels"]
    for target in panel["targets"]
]
STEP = 30  # seconds between two scrapes
BEFORE = 21  # scrapes of a healthy installation
UP = {
    frozenset({("job", "agency"), ("instance", name)}): 1.0 for name in ("one", "two")
}
LONG = timedelta(days=90)
TOKEN = "for-prometheus-only"


def scrape():
    """Return the samples of one of two hosts, {name: {labels: value}}."""
    answer = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    found = {"up": dict(UP)}
    if answer.status_code != 200:
        found["up"][next(iter(UP))] = 0.0
        return found
    for family in text_string_to_metric_families(answer.content.decode()):
        for sample in family.samples:
            labels = frozenset(sample.labels.items())
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def text_of(name, labels):
    """A series as Prometheus writes it."""
    members = ", ".join(f"{key}={json.dumps(value)}" for key, value in sorted(labels))
    return f"{name}{{{members}}}"


def series(before, after, scrapes):
    """What Prometheus has stored: a healthy installation, then another."""

    def values(samples, labels, count):
        if labels not in samples:
            return f"_x{count}"
        return f"{samples[labels]}+0x{count - 1}"

    for name in before | after:
        first, then = before.get(name, {}), after.get(name, {})
        for labels in first | then:
            parts = values(first, labels, BEFORE), values(then, labels, scrapes)
            yield {"series": text_of(name, labels), "values": " ".join(parts)}


def seconds_of(duration):
    return int(duration[:-1]) * {"s": 1, "m": 60, "h": 3600}[duration[-1]]


def judge(folder, name, before, after, labels):
    """Let promtool say whether the alert fires in the second state only."""
    rule = RULES[name]
    waits = seconds_of(rule.get("for", "0s")) + 120
    fires = {"alertname": name, "alertstate": "firing"} | rule["labels"] | labels
    changed = (BEFORE - 1) * STEP
    tries = [
        {
            "expr": 'ALERTS{alertstate="firing"}',
            "eval_time": f"{changed}s",
            "exp_samples": [],
        },
        {
            "expr": f'ALERTS{{alertname="{name}", alertstate="firing"}}',
            "eval_time": f"{changed + waits}s",
            "exp_samples": [{"labels": text_of("ALERTS", fires.items()), "value": 1}],
        },
    ]
    stored = list(series(before, after, waits // STEP))
    text = {
        "rule_files": [str(GRAFANA / "alerts.yml")],
        "evaluation_interval": f"{STEP}s",
        "tests": [
            {
                "interval": f"{STEP}s",
                "input_series": stored,
                "promql_expr_test": tries,
            }
        ],
    }
    file = folder / "test.yml"
    file.write_text(yaml.safe_dump(text))
    ran = subprocess.run(
        [find_program("promtool"), "test", "rules", file],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.fixture
def well(settings, monkeypatch):
    """A healthy installation, whose process has counted no calls of other tests."""
    for counted in (metrics.REQUESTS, metrics.DURATIONS):
        counted.clear()
    shown = database_server.read()._replace(replicas=1, reading=None)
    monkeypatch.setattr(database_server, "read", lambda: shown)
    monkeypatch.setattr(disk, "free_bytes", lambda setting: 10**12)
    monkeypatch.setattr(disk, "FOLDERS", ("STORAGE_ROOT",))
    public = certificates.PublicCertificate()
    public.asked_at, public.ends_at = time.monotonic(), timezone.now() + LONG
    monkeypatch.setattr(certificates, "public_certificate", public)
    age.record_verified(timezone.now())
    HeartbeatFactory(kind="web", host="second")
    settings.METRICS_TOKEN = TOKEN
    for kind in settings.EXPECTED_PROCESSES:
        HeartbeatFactory(kind=kind)


@pytest.fixture
def states(faber, monkeypatch, settings):
    """By the alert: what makes its state, and the labels with which it fires."""

    def silence_beat():
        silent = timezone.now() - timedelta(seconds=heartbeats.MISSING_SECONDS + 1)
        Heartbeat.objects.filter(kind="beat").update(seen_at=silent)

    def refuse_writes():
        monkeypatch.setattr(refused_writes, "last_refusal", None)  # and afterwards
        refused_writes.record_refusal(psycopg.errors.DiskFull())

    def ask_for_key():
        soon = timezone.now() + timedelta(minutes=1)
        KeyRequest.objects.create(organization=faber.tenant.pk, alive_until=soon)

    def guess_passwords():
        for _ in range(21):
            metrics.count_refusal("login_failed")

    queued = partial(InboundMessageFactory, tenant=faber.tenant)
    late = timezone.now() - timedelta(seconds=90)
    in_a_week = timezone.now() + timedelta(days=7)
    away = Mock(side_effect=monitoring.DatabaseError("away"))
    replace, broker = monkeypatch.setattr, health.PROBES["broker"]
    pools, queue = Heartbeat.objects.filter(kind="web"), "connections.InboundMessage"

    def answer(status, seconds=0.1):
        for _ in range(20):
            metrics.count_request("GET", "credentials", status, seconds)

    def show_server(**figures):
        shown = database_server.read()._replace(**figures)
        replace(database_server, "read", lambda: shown)

    return {
        "AgencyNotScraped": (
            lambda: setattr(settings, "METRICS_TOKEN", "x"),
            dict(next(iter(UP))),
        ),
        "AgencyDatabaseDown": (lambda: replace(queues, "read_queue", away), {}),
        "AgencyWritesRefused": (refuse_writes, {"reason": "disk_full"}),
        "AgencyBrokerDown": (
            lambda: replace(broker, "check", lambda: "degraded: away"),
            {},
        ),
        "AgencyProcessMissing": (silence_beat, {"kind": "beat"}),
        "AgencyQueueLate": (lambda: queued(due_at=late), {"queue": queue}),
        "AgencyQueueGaveUp": (lambda: queued(status="exhausted"), {"queue": queue}),
        "AgencyPoolExhausted": (lambda: pools.update(pool_waiting=3), {"kind": "web"}),
        "AgencyClockSkew": (
            lambda: pools.update(clock_skew=-2.5, host="late"),
            {"host": "late"},
        ),
        "AgencySessionsShort": (
            lambda: show_server(sessions=95, sessions_limit=100),
            {},
        ),
        "AgencyTransactionOld": (
            lambda: show_server(prepared=timezone.now() - timedelta(minutes=6)),
            {"kind": "prepared"},
        ),
        "AgencyReplicaLate": (lambda: show_server(lag_bytes=2**29), {}),
        "AgencyReplicaGone": (lambda: show_server(replicas=0), {}),
        "AgencyDiskShort": (
            lambda: replace(disk, "free_bytes", lambda setting: 10**9),
            {"folder": "STORAGE_ROOT"},
        ),
        "AgencyCertificateEnds": (
            lambda: replace(certificates.public_certificate, "ends_at", in_a_week),
            {"of": "public_url"},
        ),
        "AgencyBackupOld": (
            lambda: age.record_verified(timezone.now() - timedelta(days=3)),
            {},
        ),
        "AgencyHostGone": (lambda: pools.filter(host="second").delete(), {}),
        "AgencyFeedLate": (lambda: replace(queues.feed_lag, "read", lambda: 90.0), {}),
        "AgencyCallsRefused": (lambda: answer(503), {}),
        "AgencySlow": (lambda: answer(200, 3.0), {}),
        "AgencyErrors": (lambda: answer(500), {"status": "500"}),
        "AgencyKeysMissing": (ask_for_key, {}),
        "AgencyRegistriesMissing": (
            lambda: replace(queues, "count_registries_wanted", lambda: 1),
            {},
        ),
        "AgencyPasswordGuessing": (guess_passwords, {"by": "login_failed"}),
    }


@pytest.mark.slow
@pytest.mark.needs("promtool")
@pytest.mark.parametrize("name", RULES)
def test_an_alert_fires_in_its_state_only(name, well, states, tmp_path):
    make, labels = states[name]
    before = scrape()
    make()
    judge(tmp_path, name, before, scrape(), labels)


def test_a_transaction_that_is_forgotten_is_seen_by_the_feed(transactional_db):
    lag = queues.FeedLag()
    assert lag.read() == 0
    with psycopg.connect(**elsewhere()) as forgotten, forgotten.transaction():
        forgotten.execute("SELECT pg_current_xact_id()")
        assert lag.read() == 0, "nothing is behind it yet"
        HeartbeatFactory()
        first = lag.read()
        assert lag.read() > first >= 0
    assert lag.read() == 0


def elsewhere():
    """The parameters of a connection to another database of the server."""
    given = connection.get_connection_params()
    wanted = {name: given[name] for name in ("host", "port", "user", "password")}
    return wanted | {"dbname": "postgres", "autocommit": True}


@pytest.fixture
def uncached(monkeypatch):
    monkeypatch.setattr(database_server, "CACHED_SECONDS", 0)
    monkeypatch.setattr(database_server, "cached", None)


def test_a_process_that_looks_late_knows_since_when_a_feed_waits(uncached):
    began_at = timezone.now() - timedelta(minutes=3)
    lag = queues.FeedLag()
    with psycopg.connect(**elsewhere()) as forgotten, forgotten.transaction():
        forgotten.execute("SELECT pg_current_xact_id()")
        HeartbeatFactory()
        found = database_server.read()
        assert found.blocking == found.writing is not None
        shown = found._replace(blocking=began_at)
        with patch.object(database_server, "read", lambda: shown):
            assert 180 <= lag.read() < 190
    assert database_server.read().blocking is None


def test_the_server_tells_of_transactions_of_all_its_databases(uncached):
    with psycopg.connect(**elsewhere()) as other:
        with other.transaction():
            other.execute("SELECT 1")
            found = database_server.read()
            assert found.reading and not found.prepared
            assert found.transaction_seconds()["reading"] >= 0
        assert found.hidden == found.replicas == found.lag_bytes == 0
    assert 0 < found.sessions < found.sessions_limit


def test_the_figures_of_the_server_are_one_statement_in_five_seconds(monkeypatch):
    monkeypatch.setattr(database_server, "cached", None)
    with CaptureQueriesContext(connection) as asked:
        first = database_server.read()
        assert database_server.read() is first
    assert len(asked) == 1


def test_what_the_role_may_not_see_is_said(uncached):
    with connection.cursor() as cursor, transaction.atomic():
        cursor.execute("CREATE ROLE blind")
        cursor.execute("SET LOCAL ROLE blind")
        with psycopg.connect(**elsewhere()):
            assert database_server.read().hidden >= 1
        transaction.set_rollback(True)


def known_names():
    families = [
        *metrics.registry.collect(),
        *monitoring.DatabaseCollector().collect(),
        *monitoring.HostCollector().collect(),
        *monitoring.ServiceCollector(database=True, broker=True).collect(),
    ]
    suffixes = {"counter": ["_total"], "gauge": [""]}
    suffixes["histogram"] = ["_bucket", "_count", "_sum"]
    return {one.name + suffix for one in families for suffix in suffixes[one.type]}


def test_every_metric_of_dashboard_and_alerts_exists():
    texts = EXPRESSIONS + [rule["expr"] for rule in RULES.values()]
    named = {name for text in texts for name in re.findall(r"\bagency_\w+", text)}
    assert len(named) > 15
    assert named <= known_names()


def test_every_alert_has_a_section_of_the_runbook():
    page = (DOCS / "operations" / "runbook.md").read_text()
    sections = re.findall(r"^### (Agency\w+)$", page, re.MULTILINE)
    assert sections == list(RULES)
    for name, rule in RULES.items():
        link = f"docs/operations/runbook.md#{name.lower()}"
        assert rule["annotations"]["runbook"] == link
        assert rule["labels"]["severity"] in ("page", "ticket")
