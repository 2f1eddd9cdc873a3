"""Definitions with stored keys, renamed for the new schema: no keys are generated."""

import copy
from contextlib import contextmanager
from unittest import mock

import pytest

from tests.fixtures import stored
from wallets import anoncreds, key_pool
from wallets.anoncreds import Definition

# The stored definition for each number of attributes. All have keys for revocation;
# relabel_key() leaves them out of a definition without.
DEFINITION_BY_SIZE = {2: "badge", 3: "licence"}


def stored_definition(size):
    """The stored definition of this size. Fails the test if there is none."""
    if size not in DEFINITION_BY_SIZE:
        sizes = " or ".join(map(str, DEFINITION_BY_SIZE))
        pytest.fail(
            f"There is no stored key for {size} attributes, only for {sizes}. Use one "
            "of these, or store a new one: name a revocable schema of this size in "
            "SCHEMAS of tests/fixtures/make.py, run `python -m tests.fixtures.make "
            "NAME`, and add it to DEFINITION_BY_SIZE in tests/support/keys.py."
        )
    return stored(DEFINITION_BY_SIZE[size])


def definition_like(schema_id, schema, issuer_id, tag, support_revocation):
    """Replace `wallets.anoncreds.create_definition`, with a stored real key."""
    found = stored_definition(len(schema["attrNames"]))
    made = Definition(*copy.deepcopy((found.public, found.private, found.key_proof)))
    return key_pool.relabel_key(
        made, schema_id, schema, issuer_id, tag, support_revocation
    )


def new_key_at_once(count):
    """Replace `wallets.key_pool.pop_parts`: a stored key if the pool is empty."""
    parts = take(count)
    if parts is None:
        names = [f"a{number}" for number in range(count)]
        wanted = ("", {"attrNames": names}, key_pool.SPARE_ISSUER, "spare", True)
        # It is patched, here or by a test:
        parts = anoncreds.create_definition(*wanted)._asdict()
    return parts


@contextmanager
def stored_keys():
    """Patch the creation of keys, so that nothing generates a key or waits for one."""
    with (
        mock.patch("wallets.anoncreds.create_definition", definition_like),
        mock.patch("wallets.key_pool.pop_parts", new_key_at_once),
        mock.patch("wallets.key_pool.has_spare_key", lambda count: True),
        mock.patch.object(key_pool.ReservedKey, "give_back"),
    ):
        yield


take = key_pool.pop_parts
