"""The ledger of the run, and a network for organizations that publish on it."""

import pytest

from tenants import vault
from tenants.lifecycle.networks import add_network
from tests.interop import pool
from tests.support.tools import without


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
