"""PostgreSQL in a home: a cluster with one role and one database, both named agency."""

import shutil
from pathlib import Path

from agency.devtools.embedded import template
from agency.devtools.embedded.cluster import (
    FAST,
    prepare_home,
    program_path,
    read_password,
    run_program,
    run_sql,
    server_account,
    start_server,
    stop,
)

__all__ = [
    "FAST",
    "prepare_home",
    "program_path",
    "run_program",
    "server_account",
    "start",
    "stop",
]


def start(home: Path, settings: tuple[str, ...] = (), *, empty: bool = False) -> str:
    """Start the server of `home`, and return its URL. Create `home` if missing.

    settings: each `name=value`, as in postgresql.conf. empty: a new database has no
    tables; else it is migrated.
    """
    prepare_home(home)
    if not (home / "data").exists():
        create_cluster(home, is_durable="fsync=off" not in settings, empty=empty)
    stop(home)
    return f"{start_server(home, settings)}/agency"


def create_cluster(home: Path, *, is_durable: bool, empty: bool) -> None:
    """Create the cluster in another folder, then rename it.

    So `data` is either complete or missing.
    """
    unfinished = home / "data.new"
    shutil.rmtree(unfinished, ignore_errors=True)
    template.copy(unfinished)
    # What is random needs no stretching, which each connection would wait for.
    statements = ["SET scram_iterations = 1"]
    statements += [f"ALTER ROLE agency PASSWORD '{read_password(home)}'"]
    if empty:
        statements += ["DROP DATABASE agency", "CREATE DATABASE agency"]
    run_sql(home, unfinished, "postgres", statements)
    if is_durable:
        run_program(home, "initdb", "--sync-only", "-D", unfinished)
    unfinished.rename(home / "data")
