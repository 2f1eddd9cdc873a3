"""What `manage.py doctor` finds, in which words it tells it, and that it always ends."""

import io
import json
import re
import shutil
import time
from datetime import timedelta
from threading import Event
from unittest.mock import Mock

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import OperationalError, connection
from django.utils import timezone

from agency.ops import certificates, database_server, disk, doctor, fail_over, health
from agency.ops.backups import age
from agency.ops.doctor import Finding
from agency.ops.models import Heartbeat, PeriodicRun
from core.database import sessions
from core.errors import Unavailable
from core.valkey import rate_limits
from core.version import __version__, describe_version
from core.work.waiting import seconds_left
from tests.factories import HeartbeatFactory, NetworkFactory, TenantFactory
from tests.support.days import later
from tests.support.http_endpoints import answers, certificate, serving
from tests.support.paths import DOCS, ROOT
from wallets.models import SigningKey
from webhooks.delivery import days_of_calls
from webhooks.events import timeline

__all__ = ["later"]  # the fixture
pytestmark = pytest.mark.django_db(transaction=True)
AWAY = Unavailable("ledger_unavailable", "away")


def names(check):
    return [(found.name, found.level) for found in check()]


def finds(*found):
    return lambda: iter(found)


def in_days(days):
    return timezone.now() + timedelta(days=days)


def raises(error):
    return Mock(side_effect=error)


@pytest.fixture
def checks(monkeypatch):
    """Replace all checks by those given."""
    return lambda **given: monkeypatch.setattr(doctor, "CHECKS", given)


def test_a_check_that_fails_or_hangs_is_told_and_stops_no_other(checks, monkeypatch):
    over = Event()
    monkeypatch.setattr(doctor, "TIMEOUT_SECONDS", 0.3)
    checks(
        hangs=lambda: over.wait(60),
        fails=raises(ValueError("told to nobody")),
        keys=raises(ImproperlyConfigured("The key is wrong.")),
        works=finds(Finding("works", "warning", "x", "y")),
    )
    try:
        found = {one.name: one for one in doctor.run()}
    finally:
        over.set()
    levels = {name: one.level for name, one in found.items()}
    errors = dict.fromkeys(("hangs", "fails", "keys"), "error")
    assert levels == errors | {"works": "warning"}
    assert "did not end" in found["hangs"].text
    assert "ValueError" in found["fails"].text
    assert "nobody" not in found["fails"].text
    assert found["keys"].text == "The key is wrong."


def test_a_database_out_of_reach_is_told_once(checks):
    away = raises(OperationalError("connection refused: password is pass-word"))
    checks(keys=away, clock=away, queues=away)
    [found] = doctor.run()
    assert (found.name, found.text) == ("database", "PostgreSQL is out of reach.")


def test_tables_that_wait_for_a_migration_are_told_once(checks, monkeypatch):
    def read_new_column():
        with connection.cursor() as cursor:
            cursor.execute("SELECT next_release FROM tenants_tenant")

    def read_new_table():
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM next_release")

    monkeypatch.setattr(health, "check_migrations", lambda: "2 not applied")
    checks(
        processes=read_new_column,
        queues=read_new_table,
        migrations=doctor.check_migrations,
    )
    found = doctor.run()
    assert {one.name for one in found} == {"migrations"}
    assert [one.text for one in found] == [
        "2 not applied",
        "Some checks were left out: they read tables that are not there yet.",
    ]
    assert all("migrate" in one.advice for one in found)


def test_no_secret_is_in_its_output(checks, settings):
    settings.REDIS_URL = "redis://:broker-pass@10.0.0.1/0"
    secrets = [settings.SECRET_KEY, settings.AGENCY_MASTER_KEY, "broker-pass"]
    text = " ".join([*secrets, settings.REDIS_URL, "https://me:word@peer.example/x"])
    checks(leaks=finds(Finding("leaks", "error", text, text)))
    [found] = doctor.run()
    for secret in secrets:
        assert secret not in found.text + found.advice
    assert "word@" not in found.text


def test_errors_come_first_and_make_the_exit_code(checks, capsys):
    warning = Finding("a", "warning", "It may.", "Do this.")
    error = Finding("b", "error", "It does.", "Do that.")
    checks(one=finds(warning), two=finds(error))
    with pytest.raises(SystemExit) as ended:
        call_command("doctor")
    assert ended.value.code == 1
    assert capsys.readouterr().out == (
        "error b: It does.\n    Do that.\nwarning a: It may.\n    Do this.\n"
        f"doctor: 1 errors, 1 warnings. Agency {describe_version()}.\n"
    )
    checks(one=finds(warning))
    call_command("doctor", "--json")
    assert json.loads(capsys.readouterr().out) == warning._asdict()


def test_before_the_processes_start_they_are_not_missed():
    checks = doctor.CHECKS.items()
    asked = {name for name, check in checks if check in doctor.OF_RUNNING}
    assert asked == {
        "public_answer",
        "webvh_host",
        "certificate",
        "processes",
        "versions",
        "queues",
    }
    found = {one.name for one in doctor.run(is_starting=True)}
    assert not found & asked


def test_the_servers_of_the_tests_are_well():
    for name in ("keys", "migrations", "partitions", "clock", "storage"):
        assert names(doctor.CHECKS[name]) == []


def test_organizations_whose_cards_no_app_can_take_are_counted():
    assert names(doctor.check_local_network) == []
    TenantFactory(network=NetworkFactory())
    TenantFactory(is_test=True)
    TenantFactory(wallet_apps=[{"name": "Purse", "urls": ["https://purse.example"]}])
    assert names(doctor.check_local_network) == []
    TenantFactory(wallet_apps=[])
    TenantFactory()
    [found] = doctor.check_local_network()
    assert (found.name, found.level) == ("local_network", "warning")
    assert "network: 2." in found.text


def test_settings_are_checked_by_the_ids_of_django_and_by_the_connections(
    settings, monkeypatch
):
    settings.DEBUG = True
    settings.OUTGOING_ALLOW_LOOPBACK = True
    settings.DATABASE_POOL_SIZE = 10_000
    assert ("database_connections", "warning") in names(doctor.check_database)
    monkeypatch.setattr(
        doctor.checks, "what_is_kept", lambda: sessions.Kept.TRANSACTIONS
    )
    assert "database_connections" not in dict(names(doctor.check_database))
    found = dict(names(doctor.check_settings))
    assert found["security.W018"] == found["agency.W001"] == "warning"


def test_a_wrong_master_key_is_found(settings, monkeypatch):
    wrong = raises(ImproperlyConfigured("AGENCY_MASTER_KEY is not the one."))
    monkeypatch.setattr(doctor.checks, "check_master_key", wrong)
    monkeypatch.setattr(doctor, "CHECKS", {"keys": doctor.check_keys})
    assert [one.name for one in doctor.run()] == ["keys"]


def test_a_server_that_does_not_tell_its_timeline_is_found(monkeypatch):
    assert names(doctor.check_timeline) == []
    unknown = "SELECT pg_read_file('nothing') FROM pg_authid"
    monkeypatch.setattr(timeline, "IS_SWITCHED_SQL", unknown)
    assert names(doctor.check_timeline) == [("timeline", "warning")]
    # Nothing else fails for it.
    fail_over.note_switch(connection.connection)


def test_partitions_that_nobody_makes_or_drops_are_found(later):
    assert names(doctor.check_partitions) == []
    later(11)
    assert names(doctor.check_partitions) == []
    later(12)
    [found] = doctor.check_partitions()
    assert (found.name, found.level) == ("partitions", "warning")
    assert "2 are made ahead, 0 not dropped" in found.text
    days_of_calls.make_days()
    assert names(doctor.check_partitions) == []
    later(33)
    days_of_calls.make_days()
    [found] = doctor.check_partitions()
    assert "14 are made ahead, 2 not dropped" in found.text


def test_a_clock_that_is_wrong_is_found(monkeypatch):
    real = time.time
    for seconds, level, words in (
        (100, "error", "100 s ahead of"),
        (-10, "warning", "10 s behind"),
    ):
        monkeypatch.setattr(doctor.time, "time", lambda ahead=seconds: real() + ahead)
        [found] = doctor.check_clock()
        assert (found.name, found.level) == ("clock", level)
        assert words in found.text


def test_a_broker_that_keeps_or_writes_nothing_is_found(monkeypatch):
    wanted = {"appendonly": "no", "save": "", "maxmemory-policy": "allkeys-lru"}
    state = {"rdb_last_bgsave_status": "err"}
    given = {"info.return_value": state, "config_get.return_value": wanted}
    monkeypatch.setattr(rate_limits, "redis_client", lambda: Mock(**given))
    assert names(doctor.check_broker) == [
        ("broker_disk", "error"),
        ("broker_persistence", "warning"),
        ("broker_eviction", "warning"),
    ]
    wanted |= {"appendonly": "yes", "maxmemory-policy": "noeviction"}
    state.clear()
    assert names(doctor.check_broker) == []


def test_a_broker_that_forbids_questions_of_its_settings_is_no_finding(monkeypatch):
    forbidden = raises(rate_limits.RedisError("unknown command"))
    monkeypatch.setattr(rate_limits.redis_client(), "config_get", forbidden)
    assert names(doctor.check_broker) == []


def test_what_goes_wrong_in_the_server_of_the_database_is_found(monkeypatch):
    found = database_server.read()._replace(
        sessions=95,
        sessions_limit=100,
        reading=in_days(-1),
        prepared=in_days(-1),
        lag_bytes=2**29,
        hidden=2,
    )
    monkeypatch.setattr(database_server, "read", lambda: found)
    assert [name for name, _ in names(doctor.check_server)] == [
        "database_sessions",
        "transactions",
        "transactions",
        "replication",
        "statistics",
    ]


def test_a_store_that_loses_files_and_a_full_disk_are_found(monkeypatch):
    monkeypatch.setattr(doctor.default_storage, "open", lambda name: io.BytesIO(b""))
    assert names(doctor.check_storage) == [("storage", "error")]

    for free, level in ((50 * 1024**2, "error"), (500 * 1024**2, "warning")):
        usage = shutil._ntuple_diskusage(10**12, 10**12, free)
        monkeypatch.setattr(disk.shutil, "disk_usage", Mock(return_value=usage))
        assert set(names(doctor.check_disk)) == {("disk", level)}


def test_an_address_that_cannot_work_is_found(settings):
    settings.PUBLIC_URL = "http://agency.example"
    settings.ALLOWED_HOSTS = ["other.example"]
    settings.TRUSTED_PROXIES, settings.TRUST_PROXY = 1, False
    assert names(doctor.check_address) == [
        ("public_host", "error"),
        ("public_tls", "warning"),
        ("proxies", "warning"),
    ]
    settings.PUBLIC_URL = "http://127.0.0.1:8000"
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    settings.TRUSTED_PROXIES = 0
    assert names(doctor.check_address) == []


def test_a_public_address_that_leads_elsewhere_is_found(settings):
    page = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    with serving(answers(page), answers(page)) as here:
        settings.PUBLIC_URL = f"http://{here}"
        assert names(doctor.check_public_answer) == [("public_answer", "warning")]
    settings.PUBLIC_URL = "http://127.0.0.1:9"
    assert names(doctor.check_public_answer) == [("public_answer", "warning")]


def test_a_proxy_that_hides_https_is_found(settings, monkeypatch):
    settings.PUBLIC_URL = "https://agency.example"
    pages = {
        "/health": (200, "", b"Healthy"),
        "/openapi.json": (301, "https://agency.example/openapi.json", b""),
    }
    monkeypatch.setattr(doctor, "get_public", pages.get)
    assert names(doctor.check_public_answer) == [("proxy_scheme", "error")]


def test_the_product_itself_answers_at_its_address(settings, live_server):
    settings.PUBLIC_URL = live_server.url
    assert names(doctor.check_public_answer) == []
    assert names(doctor.check_certificate) == []


def test_a_mail_server_that_is_away_is_found(settings):
    settings.EMAIL_URL = "smtp://me:word@127.0.0.1:9"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    assert names(doctor.check_mail) == [("mail", "error")]


def test_a_ledger_that_is_away_is_found(monkeypatch):
    NetworkFactory()
    monkeypatch.setattr(doctor, "ledger_of", raises(AWAY))
    [found] = doctor.check_ledgers()
    assert (found.name, found.level) == ("ledger", "warning")
    assert "far" in found.text


def test_ledgers_that_do_not_answer_share_the_time(monkeypatch):
    for name in ("far", "farther"):
        NetworkFactory(id=name)
    limits = []

    def agreement():
        limits.append(seconds_left(15.0))
        Event().wait(limits[-1])
        raise AWAY

    silent = Mock(agreement=agreement)
    monkeypatch.setattr(doctor, "ledger_of", lambda network: silent)
    monkeypatch.setattr(doctor, "LEDGERS_SECONDS", 0.4)
    assert len(list(doctor.check_ledgers())) == 2
    assert max(limits) < 0.25


def test_missing_and_mixed_processes_are_found(settings):
    settings.EXPECTED_PROCESSES = ["web", "beat"]
    HeartbeatFactory(version="0.0.1")
    assert names(doctor.check_processes) == [("processes", "error")]
    assert names(doctor.check_versions) == [("versions", "warning")]
    Heartbeat.objects.update(version=f"{__version__}+0123456789ab")
    [found] = doctor.check_versions()
    assert f"{__version__}+0123456789ab run" in found.text
    Heartbeat.objects.update(version=describe_version())
    assert names(doctor.check_versions) == []


def test_missing_migrations_and_a_late_queue_are_found(monkeypatch):
    text = "2 not applied: run manage.py migrate"
    monkeypatch.setattr(health, "check_migrations", lambda: text)
    [found] = doctor.check_migrations()
    assert (found.name, found.level, found.text) == ("migrations", "error", text)
    text = "degraded: webhooks.Delivery is 90 s late"
    monkeypatch.setattr(health, "describe_late_queues", lambda: text)
    [found] = doctor.check_queues()
    assert (found.name, found.text) == ("queues", "webhooks.Delivery is 90 s late.")


def test_the_table_of_findings_is_complete():
    page = (DOCS / "operations" / "doctor.md").read_text()
    table = set(re.findall(r"^- `(\w+)`", page, re.MULTILINE))
    source = (ROOT / "agency" / "ops" / "doctor.py").read_text()
    made = set(re.findall(r'Finding\(\s*"(\w+)"', source))
    assert table == made | set(doctor.CHECKS) - {"address", "settings"}


def test_a_certificate_that_nobody_trusts_or_that_ends_soon_is_found(
    settings, monkeypatch, tmp_path
):
    trusted, context = certificate(tmp_path, "localhost")

    drops = [lambda channel: channel.recv(1)] * 3
    with serving(*drops, context=context) as here:
        settings.PUBLIC_URL = f"https://localhost:{here.rpartition(':')[2]}"
        assert names(doctor.check_certificate) == [("certificate", "error")]
        monkeypatch.setattr(certificates.certifi, "where", lambda: str(trusted))
        assert names(doctor.check_certificate) == [("certificate", "warning")]
        public = certificates.PublicCertificate()
        public.ask()
        assert 0 < public.seconds_left() < 24 * 3600


def test_a_public_certificate_is_asked_for_once_and_one_not_trusted_has_ended(
    settings, tmp_path
):
    _, context = certificate(tmp_path, "localhost")
    public = certificates.PublicCertificate()
    with serving(lambda channel: channel.recv(1), context=context) as here:
        settings.PUBLIC_URL = f"https://localhost:{here.rpartition(':')[2]}"
        public.seconds_left()
        public.probe.future.result(10)
        assert public.seconds_left() <= 0
    asked_at = public.asked_at
    settings.PUBLIC_URL = "https://localhost:1"
    assert public.seconds_left() <= 0 and public.asked_at == asked_at
    public.ask()
    assert public.seconds_left() is None, "what cannot be reached is not known"


def test_a_certificate_of_an_organization_that_ends_soon_is_found(faber):
    faber.tenant.signingkey_set.create(
        purpose="status", private_key=b"", thumbprint="x", ends_at=in_days(29)
    )
    assert names(doctor.check_signing_certificate) == [
        ("signing_certificate", "warning")
    ]
    faber.tenant.signingkey_set.update(ends_at=in_days(31))
    assert names(doctor.check_signing_certificate) == []


def test_organizations_that_wallets_with_a_list_refuse_are_counted(faber):
    assert names(doctor.check_own_authority) == []
    for purpose in SigningKey.Purpose:
        SigningKey.of(faber.tenant, purpose)
    [found] = doctor.check_own_authority()
    assert (found.name, found.level) == ("own_authority", "warning")
    assert "authority: 1." in found.text and "list of trusted" in found.text
    SigningKey.objects.update(is_uploaded=True)
    assert names(doctor.check_own_authority) == []


def test_a_backup_that_nobody_verified_in_two_days_is_found():
    age.record_verified(in_days(-3))
    assert names(doctor.check_backup) == [("backup", "warning")]
    age.record_verified(in_days(-1))
    assert names(doctor.check_backup) == []
    PeriodicRun.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute("SELECT min(applied) FROM django_migrations")
        [installed_at] = cursor.fetchone()
    since = (timezone.now() - installed_at).total_seconds()
    assert 0 <= age.verified_age() - since < 5
