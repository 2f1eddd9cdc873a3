"""Definitions without new keys: a stored key for as many attributes gets the new names."""

import copy
from contextlib import contextmanager
from unittest import mock

from tests.fixtures import stored
from wallets import anoncreds, key_pool
from wallets.anoncreds import Definition

STORED = {
    3: "licence",
    2: "badge",
}  # all keys for revocation; relabel() leaves them out


def definition_like(schema_id, schema, issuer_id, tag, support_revocation):
    """What `wallets.anoncreds.create_definition` answers, with real keys made before."""
    one = stored(STORED[len(schema["attrNames"])])
    made = Definition(*copy.deepcopy((one.public, one.private, one.key_proof)))
    return key_pool.relabel(made, schema_id, schema, issuer_id, tag, support_revocation)


def new_key_at_once(count):
    """In place of `wallets.key_pool._take`: where the pool holds no key, a stored one."""
    parts = take(count)
    if parts is None:
        names = [f"a{number}" for number in range(count)]
        wanted = ("", {"attrNames": names}, key_pool.ISSUER, "spare", True)
        parts = anoncreds.create_definition(
            *wanted
        )._asdict()  # patched, here or by a test
    return parts


@contextmanager
def stored_keys():
    """Nobody makes keys, and nobody waits for one."""
    with (
        mock.patch("wallets.anoncreds.create_definition", definition_like),
        mock.patch("wallets.key_pool._take", new_key_at_once),
        mock.patch("wallets.key_pool.has", lambda count: True),
        mock.patch.object(key_pool.Reserved, "give_back"),
    ):
        yield


take = key_pool._take
