"""The local network keeps the contract of networks."""

import pytest

from tenants.lifecycle.provisioning import LOCAL, require_network
from tests.credentials.ledgers.contract import Contract


class TestLocal(Contract):
    @pytest.fixture
    def network(self, transactional_db):
        return require_network(LOCAL)
