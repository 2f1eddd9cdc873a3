"""PostgreSQL in a home: a cluster with one role and one database, both called agency.

It listens on 127.0.0.1 with a password. It refuses to run as root: for root it runs as an account
of its own, and the folders above its program and its home become passable (o+x) for that account.
"""

import os
import pwd
import secrets
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from agency.devtools.embedded.home import (
    Failed,
    free_port,
    last_line,
    package,
    reported,
    running,
)
from agency.devtools.var import remembered

ACCOUNT = "embedded_postgres"
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


def start(home: Path, settings: tuple[str, ...] = ()) -> str:
    """Starts the server of `home`, which is made if need be; answers the URL of its database.

    settings: `name=value` each, as in postgresql.conf.
    """
    prepare(home)
    password = remembered(home / "password", secrets.token_urlsafe)
    if not (home / "data").exists():
        initialise(home)
    stop(home)
    port = free_port(home / "port")
    local = (f"port={port}", "listen_addresses=127.0.0.1", "unix_socket_directories=")
    options = " ".join(f"-c {setting}" for setting in (*local, *settings))
    run(
        home,
        "pg_ctl",
        "start",
        "-w",
        "-t",
        "120",
        "-s",
        "-l",
        home / "log",
        "-o",
        options,
    )
    server = f"postgres://agency:{password}@127.0.0.1:{port}"
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        if not connection.execute(
            "SELECT 1 FROM pg_database WHERE datname = 'agency'"
        ).fetchone():
            connection.execute("CREATE DATABASE agency")
    return f"{server}/agency"


def stop(home: Path, mode: str = "fast") -> None:
    """Stops the server of `home`; does nothing when there is none. `mode` is pg_ctl's."""
    data = home / "data"
    if running(data / "postmaster.pid", data):
        run(home, "pg_ctl", "stop", "-w", "-t", "60", "-s", "-m", mode)
    (data / "postmaster.pid").unlink(missing_ok=True)


def prepare(home: Path) -> None:
    """Makes the folder, and what else its account needs to be able to work there."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (owner := account()):
        return
    os.chown(home, owner.pw_uid, owner.pw_gid)
    for folder in (program("postgres"), home):
        for parent in folder.parents:
            allow(parent, stat.S_IXOTH)
    for path in installed().parent.glob(f"{installed().name}*/**/*"):
        allow(path, stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0))


def allow(path: Path, bits: int) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & bits != bits:
        path.chmod(mode | bits)


def initialise(home: Path) -> None:
    """Makes the cluster beside its place and moves it there: `data` is whole or absent."""
    unfinished = home / "data.new"
    shutil.rmtree(unfinished, ignore_errors=True)
    if owner := account():
        os.chown(home / "password", owner.pw_uid, owner.pw_gid)
    access = (
        "--username=agency",
        "--auth=scram-sha-256",
        f"--pwfile={home / 'password'}",
    )
    language = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin")
    run(home, "initdb", *access, *language, "--builtin-locale=C.UTF-8", data=unfinished)
    unfinished.rename(home / "data")


def run(
    home: Path, name: str, *arguments: str | Path, data: Path | None = None
) -> None:
    """Runs a program of PostgreSQL. Its output is a file, as the server would keep a pipe open."""
    identity: dict[str, Any] = {}
    if owner := account():
        identity = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    with tempfile.TemporaryFile() as output, reported("PostgreSQL"):
        result = subprocess.run(
            [program(name), "-D", data or home / "data", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=home,
            umask=0o077,
            **identity,
        )
        if result.returncode:
            output.seek(0)
            raise Failed(
                f"PostgreSQL: {name} failed. {reason(output.read(), home / 'log')}"
            )


def reason(output: bytes, log: Path) -> str:
    """The server's last fatal line says more than pg_ctl about it."""
    fatal = last_line(log.read_bytes(), "FATAL") if log.exists() else ""
    return f"{fatal} (see {log})" if fatal else last_line(output)


def account() -> pwd.struct_passwd | None:
    """The account the server runs as; None when it is ours."""
    if os.geteuid() != 0:
        return None
    if ACCOUNT not in (entry.pw_name for entry in pwd.getpwall()):
        with reported(
            f"PostgreSQL does not run as root, and making the account {ACCOUNT} failed"
        ):
            subprocess.run(
                ["useradd", "--system", ACCOUNT], check=True, capture_output=True
            )
    return pwd.getpwnam(ACCOUNT)


def installed() -> Path:
    return package("embedded_postgres")


def program(name: str) -> Path:
    return installed() / "pginstall" / "bin" / name
