"""An organization with many rows is exported without holding them in memory."""

import tracemalloc

import pytest
from django.db import connection

from connections.models import Connection
from credentials.models import Credential
from tests.agency.ops.test_moving import exports, move_key
from tests.tenants.lifecycle.test_erasure import VALUES
from tests.tenants.lifecycle.test_large_erasure import fill

__all__ = ["move_key"]  # the fixture: the key of the file
pytestmark = pytest.mark.django_db(transaction=True)
MEGABYTE = 1024 * 1024


def peak_of_export(organization, file):
    """The most that Python holds meanwhile, in bytes."""
    tracemalloc.start()
    try:
        exports(organization, file)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def bytes_of(model):
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT sum(length({table}::text)) FROM {table}")
        return cursor.fetchone()[0]


def test_the_memory_of_an_export_does_not_grow_with_the_rows(faber, acme, tmp_path):
    faber.offers(acme.hosts("Bob"), faber.defines("name", "level"), VALUES)
    peaks = []
    for name, count in (("few", 10), ("many", 3000)):
        fill(faber.tenant, count)
        peaks.append(peak_of_export(faber, tmp_path / name))
    assert bytes_of(Connection) + bytes_of(Credential) > 4 * MEGABYTE
    assert peaks[1] - peaks[0] < MEGABYTE
