"""The files and the processes of a PostgreSQL in its home.

It listens on 127.0.0.1 with a password. PostgreSQL refuses to run as root. So for root
it runs under an account of its own, and the folders above its program and its home get
o+x.
"""

import os
import pwd
import secrets
import stat
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from agency.devtools.embedded.home import (
    ToolError,
    find_server,
    free_port,
    last_line,
    package_folder,
    raise_tool_error,
)
from agency.devtools.var import read_or_create

ACCOUNT = "embedded_postgres"
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


def start_server(home: Path, settings: tuple[str, ...]) -> str:
    """Start the server on its cluster, and return its URL, without a database."""
    port = free_port(home / "port")
    local = (f"port={port}", "listen_addresses=127.0.0.1", "unix_socket_directories=")
    run_program(
        home,
        "pg_ctl",
        "start",
        "-D",
        home / "data",
        "-w",
        "-t",
        "120",
        "-s",
        "-l",
        home / "log",
        "-o",
        " ".join(f"-c {setting}" for setting in (*local, *settings)),
    )
    return f"postgres://agency:{read_password(home)}@127.0.0.1:{port}"


def stop(home: Path, mode: str = "fast") -> None:
    """Stop the server of `home` if it is running. mode: as in pg_ctl."""
    data = home / "data"
    if find_server(data / "postmaster.pid", data):
        options = ("-D", data, "-w", "-t", "60", "-s", "-m", mode)
        run_program(home, "pg_ctl", "stop", *options)
    (data / "postmaster.pid").unlink(missing_ok=True)


def prepare_home(home: Path) -> None:
    """Create the folder, and give the server's account access to it."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not (owner := server_account()):
        return
    os.chown(home, owner.pw_uid, owner.pw_gid)
    open_parents(home)
    package = package_folder("embedded_postgres")
    for path in package.parent.glob(f"{package.name}*/**/*"):
        add_permissions(path, stat.S_IROTH | (stat.S_IXOTH if path.is_dir() else 0))


def open_parents(home: Path) -> None:
    """Give the server's account access to the folders above its program and its home.

    Whoever else uses those folders may have closed them since the last time.
    """
    for folder in (program_path("postgres"), home):
        for parent in folder.parents:
            add_permissions(parent, stat.S_IXOTH)


def add_permissions(path: Path, bits: int) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & bits != bits:
        path.chmod(mode | bits)


def read_password(home: Path) -> str:
    """Return the password of the role. Create it if missing."""
    return read_or_create(home / "password", secrets.token_urlsafe)


def initialize(home: Path) -> None:
    """Create the cluster, with the password of the home."""
    read_password(home)
    if owner := server_account():
        os.chown(home / "password", owner.pw_uid, owner.pw_gid)
    access = ("--username=agency", "--auth=scram-sha-256", "--pwfile=password")
    language = ("--encoding=UTF8", "--locale=C", "--locale-provider=builtin")
    data = ("-D", home / "data", "--builtin-locale=C.UTF-8")
    run_program(home, "initdb", *data, *access, *language)


def run_sql(home: Path, data: Path, database: str, statements: list[str]) -> None:
    """Run statements, each of one line, in a cluster whose server does not run."""
    options = ("-F", "-c", "exit_on_error=true", "-D", data, database)
    run_program(home, "postgres", "--single", *options, text="\n".join(statements))


def run_program(home: Path, name: str, *arguments: str | Path, text: str = "") -> None:
    """Run a program of PostgreSQL that reads `text`. Raises ToolError if it fails.

    Its output is written to a file, because the server would keep a pipe open.
    """
    identity: dict[str, Any] = {}
    if owner := server_account():
        identity = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
        open_parents(home)
    with tempfile.TemporaryFile() as output, raise_tool_error("PostgreSQL"):
        result = subprocess.run(
            [program_path(name), *arguments],
            input=text.encode(),
            stdout=output,
            stderr=output,
            cwd=home,
            umask=0o077,
            **identity,
        )
        if result.returncode:
            output.seek(0)
            reason = last_line(output.read())
            log = home / "log"
            # The server's own says more than that of pg_ctl.
            fatal = last_line(log.read_bytes(), "FATAL") if log.exists() else ""
            if fatal:
                reason = f"{fatal} (see {log})"
            raise ToolError(f"PostgreSQL: {name} failed. {reason}")


def server_account() -> pwd.struct_passwd | None:
    """Return the account of the server, or None for the account of this process."""
    if os.geteuid() != 0:
        return None
    if ACCOUNT not in (entry.pw_name for entry in pwd.getpwall()):
        with raise_tool_error(
            f"PostgreSQL does not run as root, and making the account {ACCOUNT} failed"
        ):
            subprocess.run(
                ["useradd", "--system", ACCOUNT], check=True, capture_output=True
            )
    return pwd.getpwnam(ACCOUNT)


def program_path(name: str) -> Path:
    return package_folder("embedded_postgres") / "pginstall" / "bin" / name
