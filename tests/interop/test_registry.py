"""The Indy adapter keeps the contract of networks, on a real ledger."""

from tests.credentials.registries.contract import Contract


class TestIndy(Contract):
    """`network` comes from conftest.py."""
