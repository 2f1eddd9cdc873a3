"""Faber issues, Alice holds, Acme verifies.

Fixtures return organizations and API clients.
"""

import gc
import os
import socket
import subprocess
from collections import Counter
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.core import management
from django.core.cache import cache
from django.db import connection
from django.test import Client, TransactionTestCase, override_settings
from django.test.utils import setup_databases, teardown_databases
from whitenoise.middleware import WhiteNoiseMiddleware

from agency.devtools.embedded import temporary_home
from agency.ops import checks
from connections import tasks
from connections.protocols import discover_features
from connections.resolver import resolved_dids
from connections.transport.request_turns import Turns
from core.database import sessions
from core.database.prepared_statements import prepare_statements
from core.net import addresses
from core.valkey import rate_limits
from core.work import notify
from credentials.ledgers import network_made_by
from credentials.ledgers.local import published_body
from credentials.models import name_search
from tenants import vault
from tests.support import database, keys, outside_agent, servers
from tests.support.people import Organization, Provider
from tests.support.steps import restore_faber, step
from tests.support.tools import is_judging
from tests.support.world import restore_world
from webhooks.delivery import days_of_calls

SLOW_FOLDERS = {"chaos", "devtools", "interop", "releases"}


def pytest_collection_modifyitems(items):
    for item in items:
        if SLOW_FOLDERS & set(Path(item.path).relative_to(Path(__file__).parent).parts):
            item.add_marker(pytest.mark.slow)
    items.sort(key=timeouts_of_slow_files(items).__getitem__, reverse=True)


def timeouts_of_slow_files(items):
    """What each test is sorted by: a long file that starts last keeps all waiting."""
    longest = Counter()
    for item in items:
        if item.get_closest_marker("slow") and (
            marker := item.get_closest_marker("timeout")
        ):
            longest[item.path] = max(longest[item.path], marker.args[0])
    return {item: longest[item.path] for item in items}


def pytest_terminal_summary(terminalreporter):
    """Where CI is set, name the files that took longest."""
    if not is_judging():
        return
    seconds = Counter()
    for report in chain(*terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid.partition("::")[0]] += report.duration
    terminalreporter.section("slowest files")
    for path, spent in seconds.most_common(30):
        terminalreporter.write_line(f"{spent:7.1f} s  {path}")


def pytest_collection_finish():
    """Exclude loaded objects from garbage collections, which else take 0.5 s each.

    Until now there were none (servers.py). Tests leave few cycles behind, so they are
    rarer than by default.
    """
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(autouse=True)
def only_slow_tests_start_processes(request, monkeypatch):
    """Enforce `make test`: tests that start a process belong to `make test-slow`."""

    def refuse(self, arguments, *_, **__):
        pytest.fail(
            f"A test that starts a process ({arguments}) needs the marker `slow`."
        )

    if not request.node.get_closest_marker("slow"):
        monkeypatch.setattr(subprocess.Popen, "__init__", refuse)


@pytest.fixture(autouse=True)
def nothing_is_remembered(monkeypatch):
    """Clear what processes cache, and what the broker's server stores."""
    vault.forget_keys()
    name_search.forget_keys()
    # A slow test would ask the database once more, and so break a count of queries.
    monkeypatch.setattr(vault, "NEWEST_SECONDS", 3600.0)
    published_body.cache_clear()
    network_made_by.cache_clear()
    resolved_dids.clear()
    monkeypatch.setattr(notify, "paused_until", 0.0)
    monkeypatch.setattr(rate_limits, "paused_until", 0.0)
    cache.clear()
    rate_limits.redis_client().flushdb()


@pytest.fixture(autouse=True)
def threads_are_processes(monkeypatch):
    """Let threads handle requests to connect at once, as workers on two hosts do."""
    other_process = SimpleNamespace(handle_next=lambda: Turns().handle_next())
    monkeypatch.setattr(tasks, "turns", other_process)


@pytest.fixture(autouse=True)
def nobody_waits_for_disclosures(monkeypatch):
    """In tests the workers run when they are called: nobody would answer meanwhile."""
    monkeypatch.setattr(discover_features, "ANSWER_SECONDS", 0.0)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings):
    """A test database of our own server is a copy of its migrated one."""
    prepare_statements()  # as web processes do
    if os.environ[servers.OWN_DATABASE]:
        settings = connection.settings_dict
        settings["TEST"]["TEMPLATE"] = settings["NAME"]


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment,
    django_db_modify_db_settings,
    django_db_keepdb,
    django_db_createdb,
    django_db_blocker,
):
    """Make the test database, with a faster way to empty it after each test.

    pytest-django's makes none for tests that ask for this fixture alone: they would
    write into the database of DATABASE_URL, and empty it.
    """
    kept = django_db_keepdb and not django_db_createdb
    with django_db_blocker.unblock(), pytest.MonkeyPatch.context() as patch:
        if os.environ[servers.OWN_DATABASE]:  # a copy has nothing to migrate
            patch.setattr(management, "call_command", lambda *_, **__: None)
        patch.setattr(checks, "what_is_kept", lambda: sessions.Kept.SESSIONS)
        made = setup_databases(0, False, keepdb=kept, serialized_aliases=set())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", database.clear)
        with django_db_blocker.unblock():
            database.clear()  # what `migrate` has made, as after each test
            days_of_calls.make_days()  # its own server may be of another day
        yield
    database.close_sessions()
    with django_db_blocker.unblock():
        database.end_other_sessions()
        # One of our own server ends with it. Behind a pooler it is in use until then.
        if not django_db_keepdb and not os.environ[servers.OWN_DATABASE]:
            teardown_databases(made, 0)


@pytest.fixture(scope="session", autouse=True)
def static_files_are_listed_once():
    """List static files once: the middleware of each test client would list all."""
    add_files, listed = WhiteNoiseMiddleware.add_files_from_finders, {}

    def add_listed_files(self):
        settings = (self.static_prefix, self.max_age)
        if settings not in listed:
            add_files(self)
            listed[settings] = dict(self.files)
        self.files.update(listed[settings])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", add_listed_files)
        yield


@pytest.fixture(scope="session", autouse=True)
def registries_are_small(django_test_environment):
    """Each place of a registry takes time when its definition is made."""
    with override_settings(REVOCATION_FIRST_REGISTRY_SIZE=16):
        yield


@pytest.fixture(autouse=True)
def only_this_machine_has_a_name(monkeypatch):
    """No test asks the network for a name."""
    look_up = addresses.look_up

    def local(host, port, flags=0):
        return look_up(host, port, 0 if host == "localhost" else socket.AI_NUMERICHOST)

    monkeypatch.setattr(addresses, "look_up", local)


@pytest.fixture
def stored_keys():
    """Definitions get a stored key of the right size, not a new one (1.5 to 15 s)."""
    with keys.stored_keys():
        yield


@pytest.fixture
def home():
    """A folder for servers and files of a product of its own."""
    with temporary_home() as home:
        yield home


@pytest.fixture
def faber(request, transactional_db, stored_keys):
    return restore_faber(request)


@pytest.fixture
def acme(transactional_db, stored_keys):
    return Organization("Acme Corp")


# Faber and Alice with objects of every kind, and Acme with none.
world = database.restored(restore_world)


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def provider(faber):
    return Provider(faber)


@pytest.fixture(
    params=[
        pytest.param(outside_agent.NEW, id="didcomm.org"),
        pytest.param(outside_agent.OLD, id="did:sov", marks=pytest.mark.slow),
    ]
)
def any_phone(request, settings):
    """A phone with an agent of its own, with either prefix of message types."""
    settings.OUTGOING_ALLOW_LOOPBACK = True
    with outside_agent.listening(outside_agent.Agent(request.param)) as agent:
        yield agent


@pytest.fixture
def phone(settings):
    """A phone with an agent of its own."""
    settings.OUTGOING_ALLOW_LOOPBACK = True
    with outside_agent.listening(outside_agent.Agent()) as agent:
        yield agent


@step
@override_settings(OUTGOING_ALLOW_LOOPBACK=True)
def known_phone(faber):
    with outside_agent.listening(outside_agent.Agent()) as phone:
        phone.connects(faber)
    return phone


@pytest.fixture
def peer(known_phone, phone):
    """The phone, which is connected with Faber."""
    phone.becomes(known_phone)
    return phone
