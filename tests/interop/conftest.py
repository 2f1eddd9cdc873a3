"""The ledger of the run, and a network for organizations that publish on it."""

import os

import pytest

from organizations.networks import add_network
from tenants import vault
from tests.interop import pool


def pytest_terminal_summary(terminalreporter):
    """What was skipped, a sentence for each reason."""
    skipped = terminalreporter.stats.get("skipped", [])
    for reason in sorted(
        {report.longrepr[2].removeprefix("Skipped: ") for report in skipped}
    ):
        terminalreporter.write_line(reason)


def without(reason):
    """Skips the test, or fails it where CI is set."""
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


@pytest.fixture(scope="session", autouse=True)
def run_folder():
    with pool.folder() as path:
        yield path


@pytest.fixture(scope="session")
def indy_pool(run_folder):
    """Four validators."""
    if reason := pool.missing():
        without(reason)
    with pool.running(run_folder) as running:
        yield running


@pytest.fixture(scope="session")
def endorser_seed(indy_pool):
    return indy_pool.register("ENDORSER")


@pytest.fixture
def network(indy_pool, endorser_seed, transactional_db):
    """The ledger as a network, with an endorser of the agency."""
    vault.forget_keys()  # other processes read the one of this test
    return add_network("indy", "Indy", indy_pool.genesis.read_text(), endorser_seed)
