"""Definitions without new keys: a stored key for as many attributes gets the new names."""

import copy

from tests.fixtures import stored
from wallets import pool
from wallets.anoncreds import Definition

STORED = {3: "degree", 2: "badge"}


def definition_like(schema_id, schema, issuer_id, tag, support_revocation):
    """What `wallets.anoncreds.create_definition` answers, with real keys made before."""
    one = stored(STORED[len(schema["attrNames"])])
    made = Definition(*copy.deepcopy((one.public, one.private, one.key_proof)))
    return pool.relabel(made, schema_id, schema, issuer_id, tag, support_revocation)
