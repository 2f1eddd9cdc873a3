"""A call waits for a slow ledger for LEDGER_TIMEOUT seconds, whatever it needs of it."""

import asyncio
import json
import socket
from datetime import timedelta
from unittest import mock

import pytest
from django.utils import timezone

from core.errors import Unavailable
from core.work import waiting
from credentials import publications, publishing
from credentials.ledgers import indy
from credentials.ledgers.indy import pool
from credentials.models import Publication
from credentials.publications import claim_job, run_job
from credentials.tails import fetch_tails
from tests.support import remote_ledger
from tests.support.errors import assert_error, error_of, refusal
from wallets import key_queue
from wallets.key_queue import lease_key

DELAY, TIMEOUT = 0.06, 0.25
GET_NYM, GET_SCHEMA, SCHEMA = "105", "107", "101"


@pytest.fixture
def slow(monkeypatch, settings):
    """Each request to the ledger takes DELAY seconds. Returns the requests."""
    settings.LEDGER_TIMEOUT = TIMEOUT
    sent = []
    # The first use loads the library.
    pool.process_pools().no_response_until.clear()

    async def submit(host, genesis, request):
        kind = json.loads(request.body)["operation"]["type"]
        sent.append(kind)
        await asyncio.sleep(DELAY)
        if kind == GET_NYM:
            return {"data": json.dumps({"role": "101"})}
        if kind == SCHEMA:
            return {"txnMetadata": {"seqNo": 7, "txnTime": 7}}
        return {"data": None, "seqNo": None}

    monkeypatch.setattr(pool.Pools, "submit", submit)
    return sent


@pytest.fixture
def office(faber, slow):
    return remote_ledger.moved(faber)


SCHEMA_BODY = {"name": "Title", "version": "1.0", "attributeNames": ["name"]}


def test_a_call_waits_once_for_all_its_reads_and_writes(office, slow):
    error = error_of(office.post, "/definitions/schemas", SCHEMA_BODY)
    assert_error(error, 503, "ledger_unavailable")
    assert 3 <= len(slow) <= TIMEOUT / DELAY + 1  # one after the other
    job = Publication.objects.get()
    assert (job.kind, job.status) == ("schema", "pending")
    # The ledger has responded, slowly: it is asked again at once.
    assert not pool.process_pools().no_response_until


def test_a_worker_has_the_time_for_each_request(office, slow, monkeypatch):
    error_of(office.post, "/definitions/schemas", SCHEMA_BODY)
    slow.clear()
    monkeypatch.setattr(indy, "WRITE_VISIBLE_SECONDS", 0.1)
    with pytest.raises(Unavailable):
        run_job(claim_job(Publication.objects.get()))
    assert len(slow) * DELAY > TIMEOUT
    assert slow.count(SCHEMA) == 1 and slow[-1] == GET_SCHEMA


def test_the_wait_for_a_key_is_part_of_it(office):
    body = {"name": "Title", "version": "1.0", "attributes": ["name"]}
    # Not by monkeypatch, which would be undone after the patches of `stored_keys`.
    with mock.patch.object(key_queue, "lease_key", wraps=lease_key) as lease:
        error = error_of(office.post, "/definitions/credentials", body)
    assert_error(error, 503, "key_not_ready")
    assert lease.call_args.args[1] <= TIMEOUT


def test_what_delays_a_publication_keeps_its_code(office, monkeypatch):
    def delayed(job):
        raise Unavailable("key_not_ready", "There is no key yet.")

    monkeypatch.setattr(publications, "run_job", delayed)
    error = error_of(office.post, "/definitions/schemas", SCHEMA_BODY)
    assert_error(error, 503, "key_not_ready")
    assert "There is no key yet. Publishing continues" in str(error)
    assert Publication.objects.get().attended_until


def test_a_call_that_was_killed_leaves_its_job_to_the_same_key(office, monkeypatch):
    """When its lease has ended, also if its result is there."""
    jobs = []

    def dies(job, is_ours):
        jobs.append(job.pk)
        raise SystemError("the process is killed here")

    monkeypatch.setattr(publishing, "wait_for_job", dies)
    path = "/definitions/credentials"
    body = {"name": "Title", "version": "1.0", "attributes": ["name", "level"]}
    for key in ("first", "first", "second"):
        headers = {"Idempotency-Key": key}
        assert office.send("post", path, body, **headers).status_code == 500
        Publication.objects.filter(pk=jobs[0]).update(attended_until=None)
    assert jobs[0] == jobs[1] != jobs[2]
    Publication.objects.update(created_at=timezone.now() - timedelta(days=2))
    assert office.send("post", path, body, **headers).status_code == 500
    assert jobs[3] not in jobs[:3], "the key is not known any more"


def test_a_download_of_a_tails_file_ends_with_the_call(settings):
    """A server that accepts the call and then says nothing."""
    settings.OUTGOING_ALLOW_LOOPBACK = True
    with socket.create_server(("127.0.0.1", 0)) as silent:
        location = f"http://127.0.0.1:{silent.getsockname()[1]}/tails"
        with waiting.limit_waiting(0.2):  # of the 15 s of a download
            error = refusal(Unavailable, fetch_tails, location, "1" * 44)
            assert waiting.seconds_left(5) == 0
    assert error.code == "tails_unavailable"


def test_an_earlier_end_counts_and_nothing_is_left_behind():
    assert waiting.seconds_left(5) == 5
    with waiting.limit_waiting(60):
        with waiting.limit_waiting(1):
            assert 0 < waiting.seconds_left(5) <= 1
            with waiting.limit_waiting(30):
                assert waiting.seconds_left(5) <= 1
        assert waiting.seconds_left(5) == 5
    with waiting.limit_waiting(0):
        assert waiting.seconds_left(5) == 0
    assert waiting.seconds_left(5) == 5
