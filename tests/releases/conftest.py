import shutil

import pytest

from agency.devtools.embedded import postgres, valkey
from tests.releases import RELEASES
from tests.releases.former import load_database, read_known, unpack_source


@pytest.fixture
def newest_release():
    """The folder of the last version that operators may have now."""
    numbers = {tuple(map(int, one.name.split("."))): one for one in RELEASES.iterdir()}
    return numbers[max(numbers)]


@pytest.fixture
def source(newest_release, home):
    return unpack_source(newest_release, home / "source")


@pytest.fixture
def servers(newest_release, home):
    """Settings of processes beside the database and the files of the last release."""
    url = postgres.start(home / "postgres", postgres.FAST, empty=True)
    load_database(newest_release, url)
    shutil.copytree(newest_release / "storage", home / "storage")
    return read_known(newest_release)["keys"] | {
        "DATABASE_URL": url,
        "REDIS_URL": valkey.start(home / "valkey", durable=False),
        "KEY_POOL_SIZE": "0",  # of 0.1.0
        "SPARE_KEYS": "0",
        "LOG_LEVEL": "ERROR",
    }
