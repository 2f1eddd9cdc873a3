import shutil

import pytest

from agency.devtools.embedded import postgres, valkey
from core.version import __version__
from tests.releases import RELEASES
from tests.releases.former import load_database, read_known, unpack_source


@pytest.fixture(scope="session")
def former_release():
    """The folder of the version that operators upgrade from to this one."""
    return RELEASES / max(
        (one.name for one in RELEASES.iterdir() if number_of(one.name) < CURRENT),
        key=number_of,
    )


def number_of(version):
    return tuple(map(int, version.split(".")))


CURRENT = number_of(__version__)


@pytest.fixture(scope="session")
def source(former_release, tmp_path_factory):
    """Compiled once, by its first process."""
    folder = unpack_source(former_release, tmp_path_factory.mktemp("former") / "source")
    (folder / "var").mkdir()  # where its beat keeps a file
    return folder


@pytest.fixture
def servers(former_release, home):
    """Settings of processes beside the database and the files of the last release."""
    url = postgres.start(home / "postgres", postgres.FAST, empty=True)
    load_database(former_release, url)
    shutil.copytree(former_release / "storage", home / "storage")
    return read_known(former_release)["keys"] | {
        "DATABASE_URL": url,
        "REDIS_URL": valkey.start(home / "valkey", durable=False),
        "KEY_POOL_SIZE": "0",  # of 0.1.0
        "SPARE_KEYS": "0",
        "LOG_LEVEL": "ERROR",
    }
