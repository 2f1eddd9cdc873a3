"""Every alert fires in the state that it is for, and no metric is made up.

The expressions are evaluated here, by a reader of the forms that the rules use: a
comparison of a metric or of its growth, and absent(). Growth is that between two
answers of the product.
"""

import json
import re
from datetime import timedelta
from functools import partial
from unittest.mock import Mock

import psycopg
import pytest
import yaml
from django.test import Client
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from agency.ops import health, heartbeats, monitoring, queues
from agency.ops.models import Heartbeat
from core.database import refused_writes
from core.telemetry import metrics
from tests.factories import HeartbeatFactory, InboundMessageFactory
from tests.support.paths import DOCS, ROOT
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
SELECTOR = r"(?P<metric>\w+)(?:\{(?P<label>\w+)(?P<match>=~?)\"(?P<value>[^\"]*)\"\})?"
COMPARISON = re.compile(
    rf"(?:(?P<function>increase|delta|abs)\()?{SELECTOR}(?:\[\w+\])?\)? "
    r"(?P<operator>==|>) (?P<number>\d+)"
)
ABSENT = re.compile(rf"absent\({SELECTOR}\)")
TOKEN = "for-prometheus-only"


def scrape():
    """Return the samples of the product's answer, {name: {labels: value}}."""
    answer = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    found = {}
    for family in text_string_to_metric_families(answer.content.decode()):
        for sample in family.samples:
            labels = frozenset(sample.labels.items())
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def firing(name, before, after):
    """Return the labels for which the alert is true; absent() has none."""
    expression = RULES[name]["expr"]
    if absent := ABSENT.fullmatch(expression):
        return [] if after.get(absent["metric"]) else [{}]
    form = COMPARISON.fullmatch(expression)
    assert form, f"this reader does not know the form of {expression}"
    found = []
    for labels, value in after.get(form["metric"], {}).items():
        if form["label"] and not is_selected(form, dict(labels)):
            continue
        if form["function"] == "abs":
            value = abs(value)
        elif form["function"]:
            value -= before.get(form["metric"], {}).get(labels, 0)
        number = float(form["number"])
        if value == number if form["operator"] == "==" else value > number:
            found.append(dict(labels))
    return found


def is_selected(form, labels):
    value = labels.get(form["label"], "")
    if form["match"] == "=":
        return value == form["value"]
    return bool(re.fullmatch(form["value"], value))


@pytest.fixture
def well(settings):
    """A healthy installation, whose process has counted no calls of other tests."""
    for counted in (metrics.REQUESTS, metrics.DURATIONS):
        counted.clear()
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
    away = Mock(side_effect=monitoring.DatabaseError("away"))
    patch, broker = monkeypatch.setattr, health.PROBES["broker"]
    pools, queue = Heartbeat.objects.filter(kind="web"), "connections.InboundMessage"
    failed = {"method": "GET", "route": "credentials", "status": "500"}
    return {
        "AgencyNotScraped": (lambda: setattr(settings, "METRICS_TOKEN", "x"), {}),
        "AgencyDatabaseDown": (lambda: patch(queues, "read_queue", away), {}),
        "AgencyWritesRefused": (refuse_writes, {"reason": "disk_full"}),
        "AgencyBrokerDown": (
            lambda: patch(broker, "check", lambda: "degraded: away"),
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
        "AgencyErrors": (lambda: metrics.count_request(*failed.values(), 0.1), failed),
        "AgencyKeysMissing": (ask_for_key, {}),
        "AgencyRegistriesMissing": (
            lambda: patch(queues, "count_registries_wanted", lambda: 1),
            {},
        ),
        "AgencyPasswordGuessing": (guess_passwords, {"by": "login_failed"}),
    }


@pytest.mark.parametrize("name", RULES)
def test_an_alert_fires_in_its_state_only(name, well, states):
    make, labels = states[name]
    first, second = scrape(), scrape()
    assert firing(name, first, second) == []
    make()
    assert firing(name, second, scrape()) == [labels]


def known_names():
    families = [
        *metrics.registry.collect(),
        *monitoring.DatabaseCollector().collect(),
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
