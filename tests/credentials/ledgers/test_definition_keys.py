"""On a remote ledger a key is used up before the first byte goes there, and not before."""

import pytest

from core.errors import Conflict, Unavailable
from credentials.ledgers.indy import IndyLedger
from credentials.models import Publication
from credentials.publications import claim_job, run_job
from tests.support import remote_ledger
from tests.support.errors import assert_error, error_of, refusal
from tests.support.keys import stored_spare_key
from wallets import key_generator, key_queue
from wallets.models import SpareKey

BODY = {"name": "Title", "version": "1.0", "attributes": ["name"], "tag": "x"}
PATH = "/definitions/credentials"


class Ledger:
    """Refuses or does not answer, and notes the spare keys at its first byte."""

    def __init__(self, monkeypatch):
        self.error, self.tags, self.keys = None, set(), []
        monkeypatch.setattr(IndyLedger, "publish_schema", self.publish)
        monkeypatch.setattr(IndyLedger, "has_tag", self.has_tag)

    def publish(self, body):
        self.keys.append(SpareKey.objects.count())
        raise self.error

    def has_tag(self, did, schema_id, tag):
        return tag in self.tags


@pytest.fixture
def ledger(monkeypatch):
    return Ledger(monkeypatch)


@pytest.fixture
def office(faber, ledger):
    for _ in range(2):
        key_generator.store_key(stored_spare_key()._asdict())
    return remote_ledger.moved(faber)


@pytest.mark.parametrize(
    "error",
    [
        Conflict("schema_exists", "It exists."),
        Unavailable("ledger_unavailable", "It does not respond."),
    ],
    ids=["refused", "silent"],
)
def test_a_key_is_gone_before_the_first_byte_whatever_the_ledger_answers(
    office, ledger, error
):
    ledger.error = error
    assert error_of(office.post, PATH, BODY).code == error.code
    assert ledger.keys == [1]
    assert SpareKey.objects.count() == key_queue.free_keys().count() == 1


def test_each_attempt_has_the_same_key(office, ledger):
    ledger.error = Unavailable("ledger_unavailable", "It does not respond.")
    error_of(office.post, PATH, BODY)
    job = Publication.objects.get()
    made = job.payload()["key"]
    refusal(Unavailable, run_job, claim_job(job))
    job.refresh_from_db()
    assert job.payload()["key"] == made and ledger.keys == [1, 1]
    assert made["public"]["tag"] == "x"


def test_a_tag_that_the_ledger_has_costs_no_key(office, ledger):
    ledger.tags = {"x"}
    for _ in range(3):
        assert_error(error_of(office.post, PATH, BODY), 409, "tag_taken")
    assert ledger.keys == [] and key_queue.free_keys().count() == 2


def test_a_job_of_0_1_0_without_a_key_gets_one(office, ledger):
    ledger.error = Unavailable("ledger_unavailable", "It does not respond.")
    error_of(office.post, PATH, BODY)
    job = Publication.objects.get()
    job = claim_job(job)
    payload = job.payload()
    del payload["key"]
    job.save_progress(payload)
    refusal(Unavailable, run_job, job)
    assert ledger.keys == [1, 0]
    job.refresh_from_db()
    assert job.payload()["key"]["public"]["tag"] == "x"
