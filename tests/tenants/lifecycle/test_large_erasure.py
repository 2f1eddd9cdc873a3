"""8,000 rows go while others work, and a worker is killed in the middle.

Those of an organization go in tests/agency/ops/test_under_load.py.
"""

import os
from datetime import timedelta

import pytest
from django.utils import timezone

from bench.many_rows import copy_row, execute_statements, verkey_sql
from connections.models import BasicMessage, Connection
from credentials.models import Credential
from tenants.models import Erasure
from tests.support.feed_lag import read_feed_during
from tests.support.killed_worker import start_worker
from tests.support.processes import eventually
from wallets.models import Key
from webhooks.models import Event

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.slow,
    pytest.mark.timeout(300),
]
MANY = int(os.environ.get("ERASED_ROWS", "8000"))
PATIENCE = 600
ERASE = """
from tenants.lifecycle import erasure
from tenants.models import Erasure
while Erasure.objects.exists():
    erasure.erase_due()
"""
NUMBERED = """
CREATE TABLE numbered AS
SELECT uuidv7() AS own, uuidv7() AS own_key FROM generate_series(1, {count});
ANALYZE numbered
"""


def fill(tenant, count):
    """Copy the newest connection of an organization, its key, an offer and an event."""
    row = Connection.objects.filter(tenant=tenant).latest("pk")
    offer = Credential.objects.get(connection=row)
    event = Event.objects.filter(object_key=offer.pk).latest("pk")
    execute_statements(NUMBERED.format(count=count))
    copy_row(Key, row.my_key.pk, "numbered", id="own_key", verkey=verkey_sql("own_key"))
    copied = {"id": "own", "connection_id": "own::text", "my_key_id": "own_key"}
    copied |= {"their_key": verkey_sql("own"), "token": "''", "thread_id": "own::text"}
    copied |= {"invitation_key_id": "NULL"}
    copy_row(Connection, row.pk, "numbered", **copied)
    copied = {"id": "own", "connection_id": "own", "thread_id": "own::text"}
    copy_row(Credential, offer.pk, "numbered", **copied)
    copied = {"id": "own", "object_key": "own", "object_id": "own::text"}
    copy_row(Event, event.pk, "numbered", sequence="1", **copied)
    execute_statements("DROP TABLE numbered; ANALYZE")


def connections_left(tenant):
    return Connection.objects.filter(tenant=tenant).count()


def end_leases():
    """Those of a worker that was killed."""
    past = timezone.now() - timedelta(seconds=1)
    Erasure.objects.update(lease_until=past)


def test_8000_texts_of_a_connection_go_while_the_feeds_of_others_move_on(faber, acme):
    alice = faber.hosts()
    body = {"connectionId": alice.known_as(faber), "text": "Hi"}
    faber.post("/messages", body)
    text = BasicMessage.objects.get(wallet__is_organization=True)
    execute_statements(NUMBERED.format(count=MANY))
    copy_row(BasicMessage, text.pk, "numbered", id="own")
    execute_statements("DROP TABLE numbered; ANALYZE")
    texts = BasicMessage.objects.filter(connection=text.connection)
    acme.invites()
    faber.delete(f"/connections/{alice.known_as(faber)}")
    assert texts.count() == MANY + 1, "the call did not wait for them"
    worker = start_worker(ERASE)
    try:
        eventually(lambda: texts.count() < MANY - 1000, PATIENCE)
    finally:
        worker.kill()
        worker.wait()
    assert 0 < texts.count() < MANY
    end_leases()
    worker = start_worker(ERASE)
    left = read_feed_during(lambda: worker.poll() is None, acme, texts.count)
    assert worker.returncode == 0
    assert len(set(left)) > 5, "the feed moved on between the batches"
    assert not texts.exists()
    assert not Connection._base_manager.filter(pk=text.connection_id).exists()
