"""The pool of spare keys: definition keys that are generated in advance.

Only the safe primes of a key take seconds to find. A spare key has them, and serves a
definition of any number of attributes: all else is made anew for it
(wallets/anoncreds/resizing.py). It is generated with revocation (key_generator.py);
for a definition without, that part is left out.

Each pair of primes serves one definition, ever, so a restore forgets the keys of the
backup. reserve_key() leases a row of the pool in turn (key_queue.py), and makes the
key. ReservedKey.use() deletes the row in the transaction that stores the key. If that
is not committed, give_back() ends the lease.

Processes of 0.1.0 take a row by the number of its attributes and rename them, so new
rows are keys for one attribute. They know no leases, and may delete a row that is
leased: then use() fails.
"""

import hashlib
import logging
from typing import NamedTuple
from uuid import UUID

from django.views.decorators.debug import sensitive_variables

from core.database.base import require_known_server
from tenants import vault
from wallets import anoncreds, key_queue
from wallets.anoncreds import Definition, UnusableKey
from wallets.anoncreds.objects import SchemaBody
from wallets.key_queue import KeyNotReady
from wallets.models import SpareKey

logger = logging.getLogger(__name__)
# SHA-256 of the moduli n of the keys in tests/fixtures: anybody has their primes.
PUBLIC_KEYS = frozenset(
    {
        "5336309b5a28029d0effd937a74f0b408f7af524fa928352438fc5569793fcda",
        "5e6cc48430b78e46f697065a3ffef51939637d48e5c87cd3ca4c00d2af5e40ce",
        "e0f861a787b5933149d1a69d6f21a2291fcb8c55beb8e5889a728758d06bba20",
    }
)
# After a restore: the primes of any of them may have been used after the backup. It has
# no parameters, so that psql can run it.
FORGET_SQL = "DELETE FROM wallets_sparekey"
# What is raised for the parts of a spare key that was damaged.
DAMAGED = (UnusableKey, *vault.UNSEAL_ERRORS, LookupError, TypeError)


class ReservedKey(NamedTuple):
    """The key of a definition, and the leased spare key that has its primes."""

    spare: SpareKey
    definition: Definition

    def use(self) -> None:
        """Delete the spare key, in the transaction that stores this key.

        503 `key_not_ready` if it is not leased to the caller any more: then nothing
        may be stored.
        """
        require_known_server()  # which forgets them all
        deleted, _ = self.spare.leased_row().delete()
        if not deleted:
            raise KeyNotReady

    def give_back(self) -> None:
        """Let another definition have the primes. Does nothing to a key in use."""
        self.spare.leased_row().update(leased_until=None)


@sensitive_variables()
def reserve_key(
    schema_id: str,
    schema: SchemaBody,
    issuer_id: str,
    tag: str,
    support_revocation: bool,
    organization: UUID,
    seconds: float = key_queue.WAIT_SECONDS,
) -> ReservedKey:
    """Make the key of a definition from a spare key. Wait until there is one.

    organization: whose turn it waits for, `seconds` at most. Call it outside of
    transactions and locks, in a thread for long cryptography. 503 `key_not_ready`
    also if the spare key is damaged.
    """
    spare = key_queue.lease_key(organization, seconds)
    reserved = None
    try:
        key = open_spare_key(spare)
        made = anoncreds.resize_definition(
            key, schema_id, schema, issuer_id, tag, support_revocation
        )
        reserved = ReservedKey(spare, made)
    except DAMAGED:
        logger.error("the spare key %s cannot be used, and is deleted", spare.pk)
        spare.leased_row().delete()
    except OSError as error:  # the machine is to blame, not the key
        logger.warning("%s", error)
    finally:
        if reserved is None:
            spare.leased_row().update(leased_until=None)
    if reserved is None:
        raise KeyNotReady  # out of the handler, so without what it handled
    return reserved


@sensitive_variables()
def open_spare_key(spare: SpareKey) -> Definition:
    """Return the parts of a spare key. Raises UnusableKey if its primes are public."""
    key = Definition(**vault.unseal(spare, "parts"))
    n = key.public["value"]["primary"]["n"]
    if hashlib.sha256(n.encode()).hexdigest() in PUBLIC_KEYS:
        raise UnusableKey
    return key
