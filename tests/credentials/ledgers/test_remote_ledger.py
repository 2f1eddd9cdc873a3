"""Remote ledgers are read outside of database transactions, by all callers."""

import time
from functools import partial
from itertools import count
from types import SimpleNamespace

import pytest
from django.db import transaction

from core.errors import Unavailable
from core.work import network_reads
from credentials.ledgers import indy, ledger_of
from credentials.ledgers.indy import IndyLedger, pool
from credentials.ledgers.local import published_body
from credentials.models import PublishedObject, StatusList
from tenants.models import Network
from tests.support import queues, remote_ledger
from tests.support.errors import assert_error, error_of, refusal

VALUES = {"Full Name": "Alice", "level": "7"}
NOW = {
    "attributes": [{"policyName": "level"}],
    "revocationRequirement": {"validNow": True},
}


@pytest.fixture
def ledger(monkeypatch):
    monkeypatch.setattr(indy, "NODE_LAG_SECONDS", 0.5)
    monkeypatch.setattr(indy, "ABSENCE_CHECK_SECONDS", 0.1)
    ledger = remote_ledger.Ledger(monkeypatch)
    yield ledger
    assert ledger.in_transactions == []


@pytest.fixture
def badge(faber, settings):
    settings.REVOCATION_FIRST_REGISTRY_SIZE = 4
    return faber.defines(*VALUES, supportRevocation=True)


@pytest.fixture
def alice(ledger, badge, acme):
    """Her host and verifier is of another network than her issuer."""
    return remote_ledger.moved(acme).hosts()


def without(api):
    return api


def with_a_key(api):
    """The same caller, who sends each write with a key of its own."""
    call, numbers = api.call, count()

    def keyed(method, path, body=None, form=None):
        is_write = method in ("post", "put")
        keys = {"Idempotency-Key": str(next(numbers))} if is_write else {}
        return call(method, path, body, form, **keys)

    api.call = keyed
    return api


def verdict(acme, alice):
    asked = acme.asks(alice, **NOW)
    alice.auto_selects()
    return acme.get(f"/verifications/{asked['verificationId']}")["isValid"]


def test_what_was_accepted_before_is_refused_unasked(faber, badge, alice, ledger):
    alice.receives(faber, badge, VALUES)
    ledger.silent_about.update({"definition", "registry"})
    ledger.kinds()
    path = f"/credentials/{alice.newest('credentials')['credentialId']}"
    PublishedObject.objects.filter(network="far").delete()
    published_body.cache_clear()
    assert_error(error_of(alice.post, path), 409, "wrong_state")
    assert ledger.kinds() == set()


@pytest.mark.parametrize("caller", [without, with_a_key])
def test_a_credential_goes_all_the_way(faber, acme, badge, alice, ledger, caller):
    caller(alice).receives(faber, badge, VALUES)
    assert alice.newest("credentials")["state"] == "Issued"
    assert ledger.kinds() == {"definition", "registry"}
    assert verdict(acme, alice) is True
    assert ledger.kinds() == {"schema", "status_list"}, "what never changes was kept"
    faber.delete(f"/credentials/{faber.get('/credentials')[0]['credentialId']}")
    assert alice.newest("credentials")["state"] == "Revoked"
    assert ledger.kinds() == {"status_list"}
    assert verdict(acme, alice) is False


def test_what_is_shared_by_a_link_is_taken(faber, acme, badge, alice, ledger):
    offer = {"definitionId": badge["definitionId"], "credentialValues": VALUES}
    shared = faber.post("/credentials", offer | {"automaticIssuance": True})
    with_a_key(alice).put_form(
        "/credentials/fromData", credentialData=shared["offerData"]
    )
    assert alice.newest("credentials")["state"] == "Issued"
    policy = {"name": "Policy", "version": "1.0"} | NOW
    asked = acme.post("/verifications/policy", policy)
    data = asked["verificationRequestData"]
    alice.put_form("/verifications/fromData/autoSelect", verificationData=data)
    assert acme.get(f"/verifications/{asked['verificationId']}")["isValid"] is True


def test_a_credential_waits_for_its_ledger(faber, badge, alice, ledger):
    ledger.silent_about = {"registry"}
    alice.receives(faber, badge, VALUES)
    assert alice.newest("credentials")["state"] == "Requested"
    waiting = queues.pending().get()
    assert (waiting.attempts, waiting.last_error) == (1, "ledger_unavailable")
    ledger.silent_about = set()
    queues.worker_catches_up()
    assert alice.newest("credentials")["state"] == "Issued"


def test_nothing_goes_on_while_the_ledger_is_away(faber, acme, badge, alice, ledger):
    faber.offers(alice, badge, VALUES, automaticIssuance=True)
    ledger.silent_about = {"definition", "status_list"}
    assert_error(error_of(alice.accepts_offer), 503, "ledger_unavailable")
    assert alice.newest("credentials")["state"] == "Offered"
    ledger.silent_about = {"status_list"}
    alice.accepts_offer()
    acme.asks(alice, **NOW)
    assert_error(error_of(alice.auto_selects), 503, "ledger_unavailable")
    assert alice.newest("verifications")["state"] == "Requested"


def test_a_holder_asks_again_a_ledger_that_may_be_behind(faber, badge, alice, ledger):
    alice.receives(faber, badge, VALUES)
    ledger.stale_answers = 2
    StatusList.objects.update(is_final=True)  # so the next list is another row
    faber.delete(f"/credentials/{faber.get('/credentials')[0]['credentialId']}")
    assert alice.newest("credentials")["state"] == "Revoked"
    assert ledger.stale_answers == 0


def test_an_unknown_definition_is_asked_for_each_time(faber, badge, alice, ledger):
    faber.offers(alice, badge, VALUES)
    known = PublishedObject.objects.filter(object_id=badge["definitionId"])
    known.update(object_id="elsewhere")
    assert_error(error_of(alice.accepts_offer), 409, "unknown_definition")
    known = PublishedObject.objects.filter(object_id="elsewhere")
    known.update(object_id=badge["definitionId"])
    assert ledger.kinds() == {"definition"} and alice.accepts_offer()


@pytest.mark.parametrize("by_rows", [False, True])
def test_what_cannot_be_kept_is_read_once_for_each_transaction(
    faber, ledger, monkeypatch, by_rows
):
    definition = faber.defines(*VALUES)
    alice = remote_ledger.moved(faber).hosts()
    monkeypatch.setattr(IndyLedger, "_store_copy", lambda *found: None)
    if by_rows:
        queues.deliver_by_rows(monkeypatch)
    alice.receives(faber, definition, VALUES)
    for party in (alice, faber):
        assert party.get("/credentials")[0]["state"] == "Issued"
    # By rows, the request, the issue and the credential have one transaction each.
    reads = 3 if by_rows else 1
    assert [kind for kind, _ in ledger.asked] == ["definition"] * reads


def test_inside_a_transaction_a_ledger_is_refused_loudly(faber, badge, alice):
    network = Network.objects.get(pk="far")
    needed = pytest.raises(network_reads.ReadNeeded, match="outside")
    with needed, transaction.atomic():
        ledger_of(network).definition(badge["definitionId"])
    with pytest.raises(RuntimeError, match="inside a tr"), transaction.atomic():
        pool.send(network, None)


def test_what_was_read_for_one_attempt_is_forgotten_after_it(transactional_db):
    readings = iter([1, 2])

    @network_reads.atomic_with_reads
    def asks():
        given = "name", partial(next, readings)
        return [network_reads.read_outside_transaction(*given) for _ in range(3)]

    assert (asks(), asks()) == ([1, 1, 1], [2, 2, 2])


def test_an_attempt_that_needs_too_much_is_given_up(transactional_db, monkeypatch):
    """Each read takes a third of the time for all of them."""
    clock, names = SimpleNamespace(now=0.0, time=time.time), count()
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(network_reads, "time", clock)

    def read():
        clock.now += network_reads.TIMEOUT_SECONDS / 3

    @network_reads.atomic_with_reads
    def asks():
        network_reads.read_outside_transaction(next(names), read)

    assert refusal(Unavailable, asks).code == "too_many_reads" and next(names) > 2
