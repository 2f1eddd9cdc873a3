"""Keys of definitions from one stored spare key: no primes are generated.

It serves definitions of any number of attributes, as in the product, but again and
again, so all definitions of the tests share its n.
"""

import copy
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from threading import Lock
from unittest import mock

from django.utils import timezone

from tests.fixtures import stored
from wallets import anoncreds, key_generator, key_queue
from wallets.anoncreds import Definition
from wallets.anoncreds.resizing import make_primary_key

leasing = Lock()  # two threads of a test get two keys


def stored_spare_key():
    """A spare key for 2 attributes, with revocation."""
    badge = stored("badge")
    return Definition(*copy.deepcopy((badge.public, badge.private, badge.key_proof)))


@lru_cache
def primary_key_of_size(count):
    primes = stored("badge").private["value"]["p_key"]
    labels = list(map(str, range(count)))
    return make_primary_key(int(primes["p"]), int(primes["q"]), labels)


def resize_at_once(given):
    """Replace `run_resizing`: the key for so many labels, made once, and renamed."""
    labels = given["labels"]
    made = copy.deepcopy(primary_key_of_size(len(labels)))
    primary, proof = made["primary"], made["key_proof"]
    primary["r"] = dict(zip(labels, primary["r"].values(), strict=True))
    for pair, label in zip(proof["xr_cap"], labels, strict=True):
        pair[0] = label
    return made


def definition_like(*parameters):
    """A definition with the stored primes. parameters: of resize_definition()."""
    with quick_resizing():
        return anoncreds.resize_definition(stored_spare_key(), *parameters)


def lease_at_once(organization, seconds=None):
    """Replace `wallets.key_queue.lease_key`: nobody waits, and no key is missing."""
    with leasing:
        spare = key_queue.free_keys().first() or key_generator.store_key(
            stored_spare_key()._asdict()
        )
        spare.leased_until = timezone.now() + timedelta(minutes=1)
        spare.save(update_fields=["leased_until"])
    return spare


@contextmanager
def quick_resizing():
    with (
        mock.patch("wallets.anoncreds.issuing.run_resizing", resize_at_once),
        mock.patch("wallets.anoncreds.issuing.check_key_proof"),
    ):
        yield


@contextmanager
def stored_keys():
    """Patch the pool, so that nothing generates a key or waits for one."""
    with (
        quick_resizing(),
        mock.patch("wallets.key_pool.PUBLIC_KEYS", frozenset()),
        mock.patch("wallets.key_queue.lease_key", lease_at_once),
    ):
        yield
