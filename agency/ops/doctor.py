"""What an operator can get wrong, each finding with what to do. `manage.py doctor`.

All checks run at the same time, each in a thread of its own for at most
TIMEOUT_SECONDS. One that fails or hangs is a finding of its own, and stops no other.
"""

import os
import random
import ssl
import time
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import psycopg
from django.conf import settings
from django.core import checks as system_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.core.mail import get_connection
from django.db import connection
from django.db.models import Q
from django.http.request import validate_host
from psycopg.errors import UndefinedColumn, UndefinedTable

from agency.ops import (
    certificates,
    checks,
    database_server,
    disk,
    health,
    heartbeats,
    stored_files,
)
from agency.ops.backups import age as backup_age
from agency.ops.health import Probe
from agency.ops.models import Heartbeat
from core.database import partitions, sessions
from core.database.base import is_outage
from core.errors import AgencyError
from core.telemetry.logs import without_secrets
from core.valkey import rate_limits
from core.version import describe_version
from core.work.waiting import limit_waiting
from credentials.ledgers import ledger_of
from credentials.ledgers.webvh import own_did, served_logs
from credentials.models import WebvhDid
from tenants.models import Network, Tenant
from webhooks.delivery import days_of_calls
from webhooks.events import timeline

TIMEOUT_SECONDS = 10.0
CALL_SECONDS = 4.0
CLOCK_SECONDS = 2.0
LEDGERS_SECONDS = 8.0  # for all ledgers, or domains; less than TIMEOUT_SECONDS
MAX_HOSTS = 20  # domains of did:webvh that are asked, by chance
CERTIFICATE_DAYS = 14
SIGNING_DAYS = 30  # an authority signs them by hand
BACKUP_DAYS = 2
DROPPED_WITHIN = timedelta(days=2)
LITTLE_BYTES = 1024**3
FULL_BYTES = 100 * 1024**2
SHORTEST_SECRET = 5  # a shorter one would be found in any word
MIN_POSTGRES = 140_000
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
ERROR, WARNING = "error", "warning"
SECRETS = (
    "SECRET_KEY", "AGENCY_MASTER_KEY", "DATABASE_URL", "REDIS_URL", "EMAIL_URL",
    "METRICS_TOKEN",
)  # fmt: skip


class Finding(NamedTuple):
    """Something that is wrong. name: stable, for scripts and the docs."""

    name: str
    level: str
    text: str
    advice: str


Findings = Iterator[Finding]


def run(is_starting: bool = False) -> list[Finding]:
    """Run all checks and return the findings, errors first.

    is_starting: leave out the checks that need the other processes.
    """
    wanted = {
        name: Probe(partial(list_findings, check))
        for name, check in CHECKS.items()
        if not (is_starting and check in OF_RUNNING)
    }
    futures = {name: probe.start() for name, probe in wanted.items()}
    wait(futures.values(), TIMEOUT_SECONDS)
    found: set[Finding] = set()
    for name, future in futures.items():
        if not future.done():
            text = f"This check did not end within {TIMEOUT_SECONDS:.0f} s."
            advice = "Look whether the service that it asks hangs."
            found.add(Finding(name, ERROR, text, advice))
        elif error := future.exception():
            found.add(failed(name, error))
        else:
            found |= set(future.result())
    return sorted(map(redact, found), key=lambda one: (one.level != ERROR, *one))


def list_findings(check: Callable[[], Findings]) -> list[Finding]:
    return list(check())


def failed(name: str, error: BaseException) -> Finding:
    if is_outage(error):  # of many checks, and told once
        return Finding(
            "database",
            ERROR,
            "PostgreSQL is out of reach.",
            "Look at DATABASE_URL, at the server and at the network between.",
        )
    if isinstance(error.__cause__, UndefinedTable | UndefinedColumn):  # told once too
        return Finding(
            "migrations",
            ERROR,
            "Some checks were left out: they read tables that are not there yet.",
            "Run manage.py migrate, then manage.py doctor again.",
        )
    if isinstance(error, ImproperlyConfigured):
        return Finding(name, ERROR, str(error), "Mend this first.")
    return Finding(
        name,
        ERROR,
        f"This check failed: {type(error).__name__}.",
        "Look at the service that it asks; other findings may say what is wrong.",
    )


def redact(finding: Finding) -> Finding:
    text, advice = finding.text, finding.advice
    for name in SECRETS:
        value = str(getattr(settings, name, ""))
        for secret in (value, urlsplit(value).password or ""):
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, "...")
                advice = advice.replace(secret, "...")
    return finding._replace(text=without_secrets(text), advice=advice)


def check_settings() -> Findings:
    """Django's own checks and ours, `check --deploy`: the name is the id of each."""
    for message in system_checks.run_checks(include_deployment_checks=True):
        if message.is_silenced() or message.level < system_checks.WARNING:
            continue
        level = ERROR if message.level >= system_checks.ERROR else WARNING
        advice = message.hint or "See Django's documentation of this check."
        yield Finding(str(message.id), level, message.msg, advice)


def check_keys() -> Findings:
    checks.check_master_key()
    for message in checks.warn_of_old_master_key():
        yield Finding(str(message.id), WARNING, message.msg, str(message.hint))


def check_database() -> Findings:
    kept = checks.what_is_kept()
    if kept == sessions.Kept.STATEMENTS:
        yield Finding("pooler", ERROR, sessions.NO_TRANSACTIONS, "Then start again.")
        return
    if kept == sessions.Kept.TRANSACTIONS:
        yield from check_pooler()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_version_num')::int, "
            "current_setting('max_connections')::int, current_setting('fsync')"
        )
        version, allowed, fsync = cursor.fetchone()
    if version < MIN_POSTGRES:
        yield Finding(
            "database_version",
            ERROR,
            f"PostgreSQL is of version {version // 10000}.",
            "Upgrade it to version 14 or newer.",
        )
    # Each web process, stream, worker, deliver and a few commands. A pooler that keeps
    # transactions only needs fewer sessions.
    needed = settings.DATABASE_POOL_SIZE * (settings.WEB_PROCESSES + 2) + 8
    if needed > allowed and kept == sessions.Kept.SESSIONS:
        yield Finding(
            "database_connections",
            WARNING,
            f"The processes of this host may open {needed} connections, and PostgreSQL "
            f"allows {allowed}.",
            "Raise max_connections of PostgreSQL, or lower DATABASE_POOL_SIZE.",
        )
    if fsync != "on":
        yield Finding(
            "database_fsync",
            WARNING,
            "PostgreSQL runs with fsync off: a power cut destroys the database.",
            "Set fsync = on in postgresql.conf.",
        )


def check_pooler() -> Findings:
    yield Finding(
        "pooler",
        WARNING,
        sessions.NOT_KEPT,
        "Give commands such as migrate and backup a DATABASE_URL of PostgreSQL itself.",
    )
    if not checks.has_limits():
        yield Finding(
            "pooler_limits", WARNING, sessions.NO_LIMITS, sessions.advise_limits()
        )
    if settings.DATABASE_PREPARED_STATEMENTS:
        yield Finding(
            "pooler_statements",
            WARNING,
            "DATABASE_PREPARED_STATEMENTS is 1 behind a pooler that keeps no sessions.",
            "Unset it, unless the pooler keeps prepared statements itself.",
        )


def check_server() -> Findings:
    found = database_server.read()
    if found.sessions > database_server.MAX_SESSIONS_SHARE * found.sessions_limit:
        yield Finding(
            "database_sessions",
            WARNING,
            f"PostgreSQL has given {found.sessions} of its {found.sessions_limit} "
            "sessions.",
            "See AgencySessionsShort in docs/operations/runbook.md.",
        )
    ages = found.transaction_seconds()
    for kind, most in database_server.MAX_SECONDS.items():
        if ages[kind] > most:
            yield Finding(
                "transactions",
                WARNING,
                f"The oldest {kind} transaction of the server is {ages[kind]:.0f} s old.",
                "See AgencyTransactionOld in docs/operations/runbook.md.",
            )
    if found.lag_bytes > database_server.MAX_LAG_BYTES:
        yield Finding(
            "replication",
            WARNING,
            f"A standby has yet to replay {found.lag_bytes // 1024**2} MiB.",
            "See AgencyReplicaLate in docs/operations/runbook.md.",
        )
    if found.hidden:
        yield Finding(
            "statistics",
            WARNING,
            f"PostgreSQL hides {found.hidden} sessions of other roles: neither their "
            "transactions nor the lag of standbys are watched.",
            "GRANT pg_read_all_stats TO the user of DATABASE_URL.",
        )


def check_timeline() -> Findings:
    try:
        connection.ensure_connection()
        with connection.connection.transaction():
            connection.connection.execute(timeline.IS_SWITCHED_SQL)
    except psycopg.errors.UndefinedTable:
        return  # check_migrations() says it
    except psycopg.Error as error:
        yield Finding(
            "timeline",
            WARNING,
            "PostgreSQL does not tell its timeline, so a fail-over is not noticed: "
            f"{error}".strip(),
            "Allow the user of DATABASE_URL pg_walfile_name() and "
            "pg_current_wal_insert_lsn(), or run manage.py begin_epoch after each "
            "fail-over that may have lost transactions.",
        )


def check_migrations() -> Findings:
    if text := health.check_migrations():
        advice = (
            "Run manage.py migrate, before processes of this version start. Those of "
            "the former one go on meanwhile: docs/operations/upgrade.md."
        )
        yield Finding("migrations", ERROR, text, advice)


def check_partitions() -> Findings:
    table, since = days_of_calls.TABLE, days_of_calls.kept_since() - DROPPED_WITHIN
    days, old = partitions.days_ahead(table), partitions.list_old(table, since)
    if days < partitions.FEW_DAYS or old:
        found = f"{max(days, 0)} are made ahead, {len(old)} not dropped"
        yield Finding(
            "partitions",
            WARNING,
            f"The partitions of {table} are not looked after: {found}.",
            "Look whether beat and worker run, and for transactions that stay open. The "
            "user of DATABASE_URL must own the table and may CREATE in its schema.",
        )


def check_clock() -> Findings:
    sent = time.time()
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::float8")
        theirs = cursor.fetchone()[0]
    received = time.time()
    ahead = (sent + received) / 2 - theirs
    if abs(ahead) <= CLOCK_SECONDS + (received - sent) / 2:
        return
    word = "ahead of" if ahead > 0 else "behind"
    yield Finding(
        "clock",
        ERROR if abs(ahead) > 30 else WARNING,
        f"The clock of this host is {abs(ahead):.0f} s {word} that of PostgreSQL.",
        "Let both follow one time server (chrony, systemd-timesyncd).",
    )


def check_broker() -> Findings:
    broker = rate_limits.redis_client()
    broker.set("agency:doctor", "1", ex=10)
    state: Any = broker.info("persistence")
    wanted: Any = {}
    with suppress(rate_limits.RedisError):  # hosted services forbid it
        wanted = broker.config_get("*")
    if "err" in (
        state.get("rdb_last_bgsave_status"),
        state.get("aof_last_write_status"),
    ):
        yield Finding(
            "broker_disk",
            ERROR,
            "Redis or Valkey could not write its last copy to its disk. It may refuse "
            "all writes.",
            "Look at its log and its disk.",
        )
    if wanted.get("appendonly") == "no" and not wanted.get("save"):
        yield Finding(
            "broker_persistence",
            WARNING,
            "Redis or Valkey keeps nothing over a restart: limits of sign-in and of "
            "rates begin anew. No work is lost.",
            "Start it with --appendonly yes.",
        )
    if wanted.get("maxmemory-policy", "noeviction").startswith("allkeys"):
        yield Finding(
            "broker_eviction",
            WARNING,
            "Redis or Valkey may drop any key when its memory is full: counters of "
            "limits, and notices to workers.",
            "Set maxmemory-policy to noeviction.",
        )


def check_storage() -> Findings:
    name = default_storage.save("doctor.txt", ContentFile(b"written by doctor"))
    try:
        with default_storage.open(name) as file:
            is_same = file.read() == b"written by doctor"
    finally:
        default_storage.delete(name)
    if not is_same:
        yield Finding(
            "storage",
            ERROR,
            "A file in STORAGE_ROOT has other content than was written.",
            "Use a folder or a store that all processes share.",
        )
    if text := stored_files.describe_missing_tails():
        what, advice = text.removeprefix("degraded: ").split(": ")
        yield Finding("storage", ERROR, f"{what}.", f"{advice.capitalize()}.")


def check_served_logs() -> Findings:
    """Whether a restore has brought back older logs of did:webvh, or none."""
    served_logs.require_whole()
    if lost := served_logs.find_lost():
        yield Finding(
            "served_logs",
            ERROR,
            f"The log of did:webvh:{lost[0]} was served, and is not in the database "
            f"({len(lost)} in all): nothing of the DID can be proven.",
            "Restore a newer backup, or the point in time before the loss: "
            "docs/operations/backup.md.",
        )


def check_webvh_hosts() -> Findings:
    """Read the log of a did:webvh at each of some domains, as wallets do.

    One after the other, as check_ledgers(). A domain may be lost long after the DID was
    made.
    """
    live = WebvhDid.objects.filter(is_deactivated=False)
    rows = list(live.order_by("host", "pk").distinct("host"))
    asked = random.sample(rows, min(len(rows), MAX_HOSTS))
    end = time.monotonic() + LEDGERS_SECONDS
    for number, row in enumerate(asked):
        with limit_waiting((end - time.monotonic()) / (len(asked) - number)):
            problem = own_did.find_outside_problem(row)
        if problem:
            yield Finding(
                "webvh_host",
                WARNING,
                f"What was issued by did:webvh at {row.host} cannot be proven: "
                f"{problem}",
                "Look at the domain: that it is still yours, its DNS, its certificate, "
                "the proxy and ALLOWED_HOSTS; see docs/ledgers.md.",
            )


def check_shared_storage() -> Findings:
    if hosts := heartbeats.hosts_with_other_storage():
        yield Finding(
            "shared_storage",
            ERROR,
            f"This host does not see what {', '.join(hosts)} wrote into the storage: "
            "tails files and pictures of one host are missing on the other.",
            "Let STORAGE_ROOT lead all hosts to the same folder, or set STORAGE_BACKEND.",
        )


def check_disk() -> Findings:
    for setting in disk.FOLDERS:
        free = disk.free_bytes(setting)
        if free < LITTLE_BYTES:
            yield Finding(
                "disk",
                ERROR if free < FULL_BYTES else WARNING,
                f"The disk of {setting} has {free // 1024**2} MiB left.",
                "Make room, or move it to a larger disk.",
            )
        if not os.access(disk.existing_folder(setting), os.W_OK):
            yield Finding(
                "disk_permission",
                ERROR,
                f"{setting} cannot be written by this user.",
                f"Set {setting} to a folder that the processes may write.",
            )


def check_address() -> Findings:
    public = urlsplit(settings.PUBLIC_URL)
    host = public.hostname or ""
    if not validate_host(host, settings.ALLOWED_HOSTS):
        yield Finding(
            "public_host",
            ERROR,
            "The host of PUBLIC_URL is not in ALLOWED_HOSTS: every request is a 400.",
            f"Add {host} to ALLOWED_HOSTS.",
        )
    if public.scheme != "https" and host not in LOCAL_NAMES:
        yield Finding(
            "public_tls",
            WARNING,
            "PUBLIC_URL has no TLS: keys and cookies can be read on the way, and many "
            "wallets refuse its links.",
            "Put a proxy with TLS before it, and set PUBLIC_URL to https://...",
        )
    if settings.TRUSTED_PROXIES and not settings.TRUST_PROXY:
        yield Finding(
            "proxies",
            WARNING,
            "TRUSTED_PROXIES is set, and TRUST_PROXY is not: the address of a client "
            "is believed, and its https is not.",
            "Set TRUST_PROXY=1 if the proxy sets X-Forwarded-Proto.",
        )


def check_public_answer() -> Findings:
    """Whether PUBLIC_URL leads here, and to no endless redirect."""
    advice = "Look at DNS, the firewall and the proxy; it must pass on all paths."
    try:
        status, _, body = get_public("/health")
        _, location, _ = get_public("/openapi.json")
    except (OSError, HTTPException) as error:
        text = f"PUBLIC_URL does not answer from here: {type(error).__name__}."
        yield Finding("public_answer", WARNING, text, advice)
        return
    if body != b"Healthy":
        text = f"PUBLIC_URL/health answers {status}, not `Healthy`."
        yield Finding("public_answer", WARNING, text, advice)
    if location.startswith(settings.PUBLIC_URL):
        yield Finding(
            "proxy_scheme",
            ERROR,
            "PUBLIC_URL redirects to itself: https requests look like http.",
            "Let the proxy set X-Forwarded-Proto to https.",
        )


def get_public(path: str) -> tuple[int, str, bytes]:
    """Return status, Location and the begin of the body of a page of PUBLIC_URL."""
    public = urlsplit(settings.PUBLIC_URL)
    kind = HTTPSConnection if public.scheme == "https" else HTTPConnection
    channel = kind(public.hostname or "", public.port, timeout=CALL_SECONDS)
    try:
        channel.request("GET", f"{public.path}{path}")
        answer = channel.getresponse()
        return answer.status, answer.getheader("Location", ""), answer.read(100)
    finally:
        channel.close()


def check_certificate() -> Findings:
    try:
        public_end = certificates.read_public_end()
    except ssl.SSLCertVerificationError as error:
        public_end = None
        yield Finding(
            "certificate",
            ERROR,
            f"The certificate of PUBLIC_URL is not trusted: {error.verify_message}.",
            "Give the proxy a valid certificate with all intermediate ones.",
        )
        return
    except OSError:
        public_end = None  # public_answer tells
    yield from judge_end("certificate", "PUBLIC_URL", public_end)


def check_signing_certificate() -> Findings:
    end = certificates.read_signing_end()
    yield from judge_end("signing_certificate", "an organization", end, SIGNING_DAYS)


def check_own_authority() -> Findings:
    """Organizations that some wallets refuse, those for tests left out."""
    live = Tenant.objects.filter(deleted_at=None, is_test=False)
    own = live.filter(signingkey__ends_at__isnull=False, signingkey__is_uploaded=False)
    if count := own.distinct().count():
        yield Finding(
            "own_authority",
            WARNING,
            f"Organizations with certificates of this installation's own authority: "
            f"{count}. Wallets that check a list of trusted authorities refuse them.",
            "Have the requests of those organizations signed by an authority on the "
            "list, and upload the certificates; see docs/openid4vc.md.",
        )


def judge_end(
    name: str, whose: str, end: datetime | None, warning_days: int = CERTIFICATE_DAYS
) -> Findings:
    if end is None:
        return
    days = certificates.seconds_until(end) / 86400
    if days < warning_days:
        yield Finding(
            name,
            WARNING,
            f"The certificate of {whose} ends in {days:.0f} days.",
            "Renew it: see AgencyCertificateEnds in docs/operations/runbook.md.",
        )


def check_backup() -> Findings:
    days = backup_age.verified_age() / 86400
    if days > BACKUP_DAYS:
        yield Finding(
            "backup",
            WARNING,
            f"The last verified backup is {days:.0f} days old, or there is none.",
            "Run manage.py backup and verify_backup each day: docs/operations/backup.md.",
        )


def check_mail() -> Findings:
    if not settings.EMAIL_URL.startswith("smtp"):
        return
    try:
        get_connection(timeout=CALL_SECONDS).open()
    except OSError as error:  # also smtplib's errors
        yield Finding(
            "mail",
            ERROR,
            f"The mail server does not accept us: {type(error).__name__}.",
            "Look at host, port, user and password in EMAIL_URL, and at the firewall.",
        )


def check_ledgers() -> Findings:
    """Read the agreement of each remote ledger, to see whether it answers.

    One after the other. Each may take its share of what is left of LEDGERS_SECONDS, so
    that those which do not answer are found before the check has to end.
    """
    networks = list(Network.objects.exclude(kind=Network.Kind.LOCAL))
    end = time.monotonic() + LEDGERS_SECONDS
    for asked, network in enumerate(networks):
        share = (end - time.monotonic()) / (len(networks) - asked)
        try:
            with limit_waiting(share):
                ledger_of(network).agreement()
        except AgencyError as error:
            yield Finding(
                "ledger",
                WARNING,
                f"The ledger of network {network.pk} does not answer: {error.code}.",
                "Look at the firewall (its validators' ports) and at its genesis; "
                "what is to be published is kept meanwhile.",
            )


def check_local_network() -> Findings:
    """Organizations whose cards no wallet app can take, those for tests left out."""
    local = Tenant.objects.filter(network__kind=Network.Kind.LOCAL, is_test=False)
    # Those that name apps have some that read the local network.
    if count := local.filter(Q(wallet_apps__isnull=True) | Q(wallet_apps=[])).count():
        yield Finding(
            "local_network",
            WARNING,
            f"Organizations on the local network: {count}. Only wallets hosted here, "
            "and programs that read /ledger/local/, can take their cards.",
            "For wallet apps of others, add an Indy ledger (manage.py add_network) and "
            "create the organization on it; see docs/interop.md.",
        )


def check_processes() -> Findings:
    if text := heartbeats.describe_missing():
        yield Finding(
            "processes",
            ERROR,
            f"{text.removeprefix('degraded: ').capitalize()}.",
            "Start them; see the Procfile. If you do not run one, take it out of "
            "EXPECTED_PROCESSES.",
        )


def check_versions() -> Findings:
    """Compare the builds in the heartbeats of live processes with this one."""
    lives = Heartbeat.objects.filter(heartbeats.is_alive())
    ours = describe_version()
    others = set(lives.exclude(version=ours).values_list("version", flat=True))
    if others:
        named = ", ".join(sorted(others))
        yield Finding(
            "versions",
            WARNING,
            f"Processes of {named} run, and this is {ours}.",
            "Restart all processes after an upgrade.",
        )


def check_queues() -> Findings:
    if text := health.describe_late_queues():
        yield Finding(
            "queues",
            WARNING,
            f"{text.removeprefix('degraded: ')}.",
            "Look at the log of the worker that empties it.",
        )


CHECKS: dict[str, Callable[[], Findings]] = {
    "settings": check_settings,
    "keys": check_keys,
    "database": check_database,
    "transactions": check_server,
    "migrations": check_migrations,
    "partitions": check_partitions,
    "clock": check_clock,
    "timeline": check_timeline,
    "broker": check_broker,
    "storage": check_storage,
    "served_logs": check_served_logs,
    "shared_storage": check_shared_storage,
    "disk": check_disk,
    "address": check_address,
    "public_answer": check_public_answer,
    "webvh_host": check_webvh_hosts,
    "certificate": check_certificate,
    "signing_certificate": check_signing_certificate,
    "own_authority": check_own_authority,
    "backup": check_backup,
    "mail": check_mail,
    "ledger": check_ledgers,
    "local_network": check_local_network,
    "processes": check_processes,
    "versions": check_versions,
    "queues": check_queues,
}
# They need processes that are not there yet when the first one starts.
OF_RUNNING = (
    check_public_answer,
    check_webvh_hosts,
    check_certificate,
    check_processes,
    check_versions,
    check_queues,
)
