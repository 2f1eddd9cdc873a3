"""Write the folder of the checked-out version: `python -m tests.releases`.

It plays the stories in an empty database of a PostgreSQL of its own and dumps it. It
also packs the source, which tests of the next version start beside their tables.
Nothing here is a secret: the keys are made for this one database.
"""

import json
import lzma
import os
import re
import secrets
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from urllib.parse import urlsplit

import django

from agency.devtools.embedded import postgres, temporary_home, valkey
from agency.devtools.embedded.home import new_master_key
from core.version import __version__
from tests.production.__main__ import copy_product
from tests.releases import RELEASES, hashes
from tests.releases.former import SOURCE

NOTE = "Keys and ids of a database that was made for tests: they open nothing else."


def main() -> None:
    folder = RELEASES / __version__
    if folder.exists():
        sys.exit(f"{folder} exists: what is released stays as it is.")
    unfinished = RELEASES / f"{__version__}.new"
    shutil.rmtree(unfinished, ignore_errors=True)
    with temporary_home() as home:
        environment = {
            "DATABASE_URL": postgres.start(
                home / "postgres", postgres.FAST, empty=True
            ),
            "REDIS_URL": valkey.start(home / "valkey", durable=False),
            "STORAGE_ROOT": str(unfinished / "storage"),
            "SECRET_KEY": secrets.token_urlsafe(50),
            "AGENCY_MASTER_KEY": new_master_key(),
        }
        os.environ |= environment | {
            "DEBUG": "0",
            "STATIC_USE_FINDERS": "1",  # nothing is collected here
            "LOG_LEVEL": "ERROR",
            "OUTGOING_ALLOW_LOOPBACK": "1",
            "WEBHOOK_REQUIRE_HTTPS": "0",
            "WEBHOOK_THREADS": "4",
            "LEDGER_TIMEOUT": "0.5",
            "REVOCATION_FIRST_REGISTRY_SIZE": "16",
        }
        known = play()
        write(unfinished / "migrations.json", hashes())
        keys = {name: environment[name] for name in ("SECRET_KEY", "AGENCY_MASTER_KEY")}
        write(unfinished / "known.json", {"note": NOTE, "keys": keys} | known)
        (unfinished / "database.sql.xz").write_bytes(lzma.compress(dump(), preset=9))
        pack_source(unfinished / SOURCE, home / "source")
    unfinished.rename(folder)
    print(f"Wrote {folder}.")


def play() -> dict:
    django.setup()
    from django.core.management import call_command
    from django.test.utils import setup_test_environment

    from tests.releases import story
    from tests.support import keys

    setup_test_environment()
    call_command("migrate", verbosity=0)
    with keys.stored_keys():
        return story.tell()


def dump() -> bytes:
    """SQL that any driver can run, without parts for psql or new servers only."""
    url = urlsplit(os.environ["DATABASE_URL"])
    command = [
        postgres.program_path("pg_dump"),
        "--no-owner",
        "--inserts",
        "--rows-per-insert=100",
    ]
    done = subprocess.run(
        [*command, "--dbname", url._replace(scheme="postgresql").geturl()],
        check=True,
        capture_output=True,
        text=True,
    )
    only_here = re.compile(
        r"^(\\(un)?restrict |SET transaction_timeout).*\n", re.MULTILINE
    )
    return only_here.sub("", done.stdout).encode()


def pack_source(archive: Path, folder: Path) -> None:
    """Pack what the image holds. folder: a new one for the files."""
    names = copy_product(folder)
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for name in sorted(names):
            packed.add(folder / name, name)


def write(path: Path, content: dict) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
