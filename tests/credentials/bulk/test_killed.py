"""A worker is killed in the middle of a bulk: no row is offered twice or lost."""

import signal
import time

import pytest

from credentials.models import BulkRow, Credential
from tests.credentials.bulk.people import read, read_result, sent, worker_issues
from tests.support.killed_worker import start_worker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
WORK = """
from credentials.bulk import issuing
issuing.loop.run()
"""
ROWS, BAD = 200, {20, 60, 61, 150, 199}
MIDWAY = 80


def kill_inside_a_row():
    worker = start_worker(WORK, FAULT_POINT="inside_bulk_row", FAULT_INJECTION="1")
    assert worker.wait(timeout=60) == -signal.SIGKILL


def kill_midway():
    worker = start_worker(WORK)
    while offered() < MIDWAY and worker.poll() is None:
        time.sleep(0.01)
    worker.send_signal(signal.SIGKILL)
    assert worker.wait(timeout=60) == -signal.SIGKILL


def offered():
    return BulkRow.objects.filter(status=BulkRow.Status.OFFERED).count()


def let_the_lease_run_out():
    Bulk = BulkRow._meta.get_field("bulk").related_model
    Bulk.objects.update(lease_until="2026-01-01T00:00Z", due_at="2026-01-01T00:00Z")


def test_of_200_rows_with_5_bad_ones_195_are_issued_once(faber):
    definition = faber.defines("name", "year", claims={"year": {"type": "integer"}})
    alice = faber.hosts("Alice")
    alice.known_as(faber)
    lines = [f"n{n},{'x' if n in BAD else n},{alice.wallet_id}" for n in range(ROWS)]
    text = "\n".join(["name,year,walletId", *lines])
    bulk = sent(faber, definition, text, automaticIssuance="true")
    kill_inside_a_row()
    assert offered() == 0 and not Credential.objects.exists()
    let_the_lease_run_out()
    kill_midway()
    assert MIDWAY <= offered() < ROWS - len(BAD)
    let_the_lease_run_out()
    worker_issues()
    found = read(faber, bulk)
    assert (found["state"], found["counts"]) == ("Done", {"Offered": 195, "Failed": 5})
    assert [error["row"] for error in found["errors"]] == [n + 2 for n in sorted(BAD)]
    offers = alice.get("/credentials")
    years = [int(offer["values"]["year"]) for offer in offers]
    assert sorted(years) == [n for n in range(ROWS) if n not in BAD]
    for offer in offers[:3]:
        alice.post(f"/credentials/{offer['credentialId']}")
    assert read(faber, bulk)["counts"] == {"Issued": 3, "Offered": 192, "Failed": 5}
    ids = [line[2] for line in read_result(faber, bulk) if line[2]]
    assert len(set(ids)) == 195
