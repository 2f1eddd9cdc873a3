"""The Indy adapter keeps the contract of networks, on a real ledger."""

import pytest

from core.errors import Unavailable
from tests.credentials.ledgers.contract import LATER, Contract, publish, revoked


class TestIndy(Contract):
    """`network` comes from conftest.py."""

    def test_a_list_made_of_an_old_one_takes_nothing_back(
        self, registry, writing, definition, revocable
    ):
        """Two processes create the next list from the same one.

        The second must start again.
        """
        registry_id, made = revocable
        first = registry.status_list(registry_id, LATER)
        publish(registry, writing, definition[1], made, first, [1])
        with pytest.raises(Unavailable) as refused:
            publish(registry, writing, definition[1], made, first, [2])
        assert refused.value.code == "list_superseded"
        assert revoked(registry.status_list(registry_id, LATER)) == [1]
