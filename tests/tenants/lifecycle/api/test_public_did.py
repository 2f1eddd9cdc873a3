"""The endpoint of an organization's public DID, over the API."""

import pytest
from django.db import connection

from core.errors import Conflict
from credentials import tasks
from credentials.ledgers import indy, ledger_of
from credentials.ledgers.indy import pool
from credentials.models import Publication
from tenants.models import AuditEntry
from tests.support.races import at_once
from tests.support.remote_ledger import moved

PATH = "/tenants/publicDid"


class Ledger:
    """What `publish_endpoint` of an Indy ledger has written; `failure` is raised."""

    def __init__(self):
        self.written, self.failure, self.in_transaction = [], None, False

    def publish(self, adapter, did, endpoint):
        self.in_transaction |= connection.in_atomic_block
        if self.failure:
            raise self.failure
        self.written.append((did, endpoint))


@pytest.fixture
def far(faber, monkeypatch):
    ledger = Ledger()
    monkeypatch.setattr(
        indy.IndyLedger, "publish_endpoint", lambda *given: ledger.publish(*given)
    )
    moved(faber)
    faber.tenant.refresh_from_db()
    return ledger


def worker_publishes():
    """What is due, or waits for a lease to end."""
    Publication.objects.update(due_at="2026-01-01T00:00Z", lease_until=None)
    tasks.publish_on_ledgers()


def test_at_first_nothing_is_published_and_nobody_may_connect(faber, acme):
    assert acme.post(PATH)["did"] != faber.get(PATH)["did"]
    shown = faber.get(PATH)
    assert shown["state"] == "Unpublished" and "endpoint" not in shown
    assert shown["acceptsRequests"] is False
    assert shown["verkey"] and shown["did"] == faber.get("/api/config")["issuerDid"]


def test_on_the_local_network_the_endpoint_is_published_at_once(faber, settings):
    settings.PUBLIC_URL = "https://agency.example"
    shown = faber.post(PATH)
    assert shown["state"] == "Published"
    assert shown["endpoint"] == "https://agency.example/didcomm"
    service = ledger_of(faber.tenant.network).did_service(shown["did"])
    assert service == (shown["verkey"], shown["endpoint"], [])
    assert faber.post(PATH) == faber.get(PATH) == shown
    settings.PUBLIC_URL = "https://moved.example"
    assert faber.post(PATH)["endpoint"] == "https://moved.example/didcomm"
    assert Publication.objects.filter(kind="endpoint").count() == 1


def test_a_ledger_that_is_away_gets_it_later(faber, far):
    far.failure = pool.no_response(faber.tenant.network)
    shown = faber.post(PATH)
    assert (shown["state"], shown["problem"]) == ("Publishing", "ledger_unavailable")
    assert faber.post(PATH)["state"] == "Publishing"
    far.failure = None
    worker_publishes()
    shown = faber.get(PATH)
    assert shown["state"] == "Published" and "problem" not in shown
    assert far.written == [(shown["did"], shown["endpoint"])]
    assert not far.in_transaction


def test_a_refusal_says_what_to_do_and_is_tried_again(faber, far):
    far.failure = Conflict("not_endorsed", "Ask the network's operator.")
    shown = faber.post(PATH)
    assert shown["state"] == "Publishing"
    assert shown["problem"] == "Ask the network's operator."
    far.failure = None
    faber.post(PATH)
    tasks.publish_on_ledgers()
    assert faber.get(PATH)["state"] == "Published"


def test_another_address_replaces_what_is_being_published(faber, far, settings):
    far.failure = pool.no_response(faber.tenant.network)
    faber.post(PATH)
    far.failure = None
    settings.PUBLIC_URL = "https://moved.example"
    shown = faber.post(PATH)
    assert shown["state"] == "Published"
    assert shown["endpoint"] == "https://moved.example/didcomm"
    worker_publishes()
    assert len(far.written) == 1


def test_a_worker_that_died_is_followed_by_another(faber, far, monkeypatch):
    complete = Publication.complete
    monkeypatch.setattr(Publication, "complete", lambda *given, **named: 1 / 0)
    faber.post(PATH)
    monkeypatch.setattr(Publication, "complete", complete)
    worker_publishes()
    assert faber.get(PATH)["state"] == "Published"
    assert len(set(far.written)) == 1, "the same once more is harmless"


def test_several_calls_at_once_make_one_job(faber, far):
    results = at_once(*[lambda: faber.post(PATH)] * 4)
    assert not [one for one in results if isinstance(one, Exception)]
    tasks.publish_on_ledgers()
    assert Publication.objects.filter(kind="endpoint").count() == 1
    assert faber.get(PATH)["state"] == "Published"


def test_what_was_changed_is_in_the_log(faber):
    faber.post(PATH)
    faber.put(PATH, {"acceptsRequests": True})
    entries = AuditEntry.objects.filter(tenant=faber.tenant).order_by("pk")
    actions = [one.action for one in entries]
    assert actions[-2:] == ["endpoint.published", "organization.changed"]
    assert entries.last().details["accepts_requests"] is True
