import contextlib
import signal
import socket
import stat

import psutil
import pytest

from agency.devtools import run
from tests.agency.devtools.launcher import Launcher, interrupt


def test_it_serves_until_ctrl_c_and_keeps_its_data(launcher: Launcher) -> None:
    launcher.with_own_servers()
    assert interrupt(launcher.start_and_wait()) == 0
    assert launcher.manage_calls() == ["migrate", "demo"]
    first = (launcher.folder / "manage.log").read_text().split()[1]
    assert interrupt(launcher.start_and_wait()) == 0
    assert launcher.manage_calls() == ["migrate", "demo", "migrate"]
    assert (launcher.folder / "manage.log").read_text().split()[-1] == first


def test_a_database_that_exists_is_migrated_before_a_service_starts(
    launcher: Launcher,
) -> None:
    interrupt(launcher.with_own_servers().start_and_wait())
    launcher.environment["FAIL"] = "no such column"
    assert launcher.run() == 1
    assert "no such column" in launcher.output()
    assert "Starting web" not in launcher.output()


def test_a_service_that_ends_on_new_data_is_explained_by_migrate(
    launcher: Launcher,
) -> None:
    (launcher.folder / "service.py").write_text("raise SystemExit('Traceback')")
    launcher.with_own_servers().environment["FAIL"] = "The key is wrong."
    assert launcher.run() == 1
    assert "The key is wrong." in launcher.output().splitlines()


def test_it_recovers_from_a_killed_launcher_and_killed_servers(
    launcher: Launcher,
) -> None:
    launcher.with_own_servers()
    killed = launcher.start_and_wait()
    killed.kill()
    killed.wait()
    names = {process.name() for process in launcher.processes()}
    assert {"postgres", "valkey-server"} <= names and len(launcher.processes()) > 4
    pid_file = launcher.folder / "var" / "postgres" / "data" / "postmaster.pid"
    psutil.Process(int(pid_file.read_text().split()[0])).kill()
    again = launcher.start_and_wait()
    assert "Ended 5 processes that an earlier run had left behind." in launcher.output()
    assert interrupt(again) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_cleanly(launcher: Launcher, number: int) -> None:
    process = launcher.start_and_wait()
    process.send_signal(number)
    assert process.wait(60) == 0
    assert not (launcher.folder / "var" / "environment.json").exists()


@pytest.mark.parametrize("name", ["web", "stream", "worker", "deliver", "beat"])
def test_a_service_that_dies_is_named_and_ends_the_run(
    launcher: Launcher, name: str
) -> None:
    process = launcher.start_and_wait()
    [service] = [
        p for p in launcher.processes() if p.cmdline()[-2:] == ["service.py", name]
    ]
    service.kill()
    assert process.wait(60) == 1
    assert f"{name} ended unexpectedly (exit code -9)" in launcher.output()


def test_a_service_that_does_not_come_up_ends_the_run(launcher: Launcher) -> None:
    (launcher.folder / "service.py").write_text("raise SystemExit('no module')")
    assert launcher.run() == 1
    assert "ended unexpectedly (exit code 1)" in launcher.output()


def test_a_second_run_in_the_folder_is_refused(launcher: Launcher) -> None:
    first = launcher.start_and_wait()
    assert launcher.run() == 1
    assert launcher.output() == "Agency already runs in this folder. Stop it first.\n"
    assert interrupt(first) == 0


def test_a_taken_port_is_refused(launcher: Launcher) -> None:
    port = int(launcher.environment["PORT"])
    with socket.create_server(("127.0.0.1", port)):
        assert launcher.run() == 1
    assert launcher.output() == (
        f"Port {port} cannot be used (Address already in use). "
        f"Choose another one, for example: make run PORT={port + 1}\n"
    )


@pytest.mark.parametrize("port", ["http", "0", "65536", "-1"])
def test_a_port_that_is_none_is_refused(launcher: Launcher, port: str) -> None:
    launcher.environment["PORT"] = port
    assert launcher.run() == 1
    assert (
        launcher.output() == f"PORT must be a number from 1 to 65535, not {port!r}.\n"
    )


def test_keys_are_made_once_and_only_ours_to_read(launcher: Launcher) -> None:
    for name in ("SECRET_KEY", "AGENCY_MASTER_KEY"):
        launcher.environment.pop(name)
    interrupt(launcher.start_and_wait())
    files = [launcher.folder / "var" / name for name in ("secret.key", "master.key")]
    before = [file.read_text() for file in files]
    interrupt(launcher.start_and_wait())
    assert [file.read_text() for file in files] == before
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


@pytest.mark.parametrize("chosen", [None, "sovrin-staging=other"])
def test_networks_of_the_original_service_are_the_local_one(
    monkeypatch: pytest.MonkeyPatch, chosen: str | None
) -> None:
    """What its provider application offers in a menu; unless the caller has set it."""
    for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "AGENCY_MASTER_KEY"):
        monkeypatch.setenv(name, "given")
    monkeypatch.delenv("NETWORK_ALIASES", raising=False)
    if chosen:
        monkeypatch.setenv("NETWORK_ALIASES", chosen)
    values = run.build_environment(8000, contextlib.ExitStack())
    aliases = "sovrin-staging=local,sovrin-builder=local,bcovrin-test=local"
    assert values.get("NETWORK_ALIASES") == (None if chosen else aliases)


@pytest.mark.parametrize(
    "failure, sentence",
    [
        (
            "Traceback:\n  File "
            "x\ndjango.core.exceptions.ImproperlyConfigured: The key is wrong.",
            "The key is wrong.",
        ),
        (
            "SystemCheckError: System check identified some issues:\n\nERRORS:\n"
            "?: (agency.E001) The key is wrong.\n\tHINT: Use the other one.\n\n"
            "System check identified 1 issue (0 silenced).",
            "The key is wrong.",
        ),
        (
            "psycopg.OperationalError: connection failed: refused\n\tIs the "
            "server running?",
            "connection failed: refused Is the server running?",
        ),
        ("CommandError: No such table.", "No such table."),
        ("Killed", "Killed"),
    ],
)
def test_a_database_that_cannot_be_updated_is_one_sentence(
    launcher: Launcher, failure: str, sentence: str
) -> None:
    launcher.environment["FAIL"] = failure
    assert launcher.run() == 1
    assert launcher.output() == f"Updating the database ... \n{sentence}\n"


def test_a_demo_that_fails_leaves_the_rest_running(launcher: Launcher) -> None:
    manage = launcher.folder / "manage.py"
    manage.write_text("import sys\nsys.exit(sys.argv[1] == 'demo')")
    process = launcher.start_and_wait()
    assert "The demo did not finish" in launcher.output()
    assert interrupt(process) == 0
