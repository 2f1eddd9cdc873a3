"""The pool of spare keys: each is used for one definition, of any size, and no other."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from unittest.mock import Mock

import pytest
from django.db import transaction
from django.utils import timezone

from core.errors import Invalid, Unavailable
from credentials.models import CredentialDefinition
from tenants import vault
from tenants.models import Tenant
from tests.support.errors import assert_error, error_of, refusal
from tests.support.keys import quick_resizing, stored_spare_key
from tests.support.people import Organization
from tests.support.processes import eventually
from tests.support.races import at_once, in_thread
from wallets import key_generator, key_pool, key_queue
from wallets.anoncreds import issuing
from wallets.anoncreds.resizing import make_primary_key
from wallets.models import KeyRequest, SpareKey

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"Full Name": "Alice", "level": "7"}
SCHEMA = {
    "issuerId": "F72i3Y3Q4i466efjYJYCHM",
    "name": "Badge",
    "version": "1",
    "attrNames": ["a"],
}


@pytest.fixture
def faber():
    return Organization("Faber")


@pytest.fixture
def quick():
    """Keys are made at once, from the primes of the tests."""
    with quick_resizing(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_pool, "PUBLIC_KEYS", frozenset())
        patch.setattr(key_queue, "POLL_SECONDS", 0.01)
        yield patch  # its changes end before quick_resizing() does


@pytest.fixture
def impatient(monkeypatch):
    """Whoever waits for a key gives up at once."""
    monkeypatch.setattr(key_queue, "MAX_WAITING", 0)


def put_in(count=1, **damage):
    """Spare keys that were made before."""
    parts = stored_spare_key()._asdict() | damage
    return [key_generator.store_key(parts) for _ in range(count)]


def reserve(organization):
    return key_pool.reserve_key(
        schema_id=f"{SCHEMA['issuerId']}:2:Badge:1",
        schema=SCHEMA,
        issuer_id=SCHEMA["issuerId"],
        tag="default",
        support_revocation=False,
        organization=organization.tenant.pk,
        seconds=0,
    )


@pytest.mark.parametrize("revocable", [True, False])
def test_a_definition_takes_a_key_and_its_credentials_verify(faber, quick, revocable):
    put_in()
    definition = faber.defines("Full Name", "level", supportRevocation=revocable)
    assert SpareKey.objects.count() == 0
    alice = faber.hosts()
    alice.receives(faber, definition, VALUES)
    asked = faber.asks(alice, attributes=[{"policyName": "Full Name"}])
    alice.auto_selects()
    assert faber.get(f"/verifications/{asked['verificationId']}")["isValid"] is True
    assert CredentialDefinition.objects.get().supports_revocation is revocable


def test_only_the_primes_and_the_part_for_revocation_are_stored(faber, quick):
    put_in(2)
    faber.defines("a", "b", "c")
    faber.defines("a", supportRevocation=True)
    old = stored_spare_key().private["value"]
    for row in CredentialDefinition.objects.all():
        r_key = old["r_key"] if row.supports_revocation else None
        kept = {"p_key": old["p_key"], "r_key": r_key}
        assert vault.unseal(row, "private_key") == {"value": kept}


def test_each_key_is_taken_once(faber, quick):
    put_in(2)
    answers = at_once(*[lambda: faber.defines("a", "b") for _ in range(2)])
    assert SpareKey.objects.count() == 0
    assert len({answer["definitionId"] for answer in answers}) == 2


def test_calls_that_are_refused_cost_no_key(faber, quick, monkeypatch):
    put_in(2)
    body = {"name": "a", "version": "1", "attributes": ["a", "b"], "tag": "x"}
    assert faber.post("/definitions/credentials", body)
    for _ in range(20):
        error = error_of(faber.post, "/definitions/credentials", body)
        assert_error(error, 409, "tag_taken")
    with monkeypatch.context() as patch:  # its CPU time is not taken either
        patch.setattr(key_pool, "reserve_key", Mock(side_effect=AssertionError))
        others = body | {"attributes": ["c"], "tag": "y"}
        error = error_of(faber.post, "/definitions/credentials", others)
        assert_error(error, 409, "schema_exists")
    failing = Mock(side_effect=ZeroDivisionError)
    monkeypatch.setattr(
        "credentials.publishing.CredentialDefinition.record_published", failing
    )
    response = faber.send("post", "/definitions/credentials", body | {"tag": "y"})
    assert failing.called and response.status_code == 500
    assert key_queue.free_keys().count() == SpareKey.objects.count() == 1


def test_a_key_is_deleted_with_the_transaction_that_stores_it(faber, quick):
    put_in()
    reserved = reserve(faber)
    with transaction.atomic():
        reserved.use()
        transaction.set_rollback(True)
    assert SpareKey.objects.get().leased_until
    reserved.give_back()
    assert key_queue.free_keys().count() == 1


def test_a_leased_key_that_somebody_else_took_is_not_stored(faber, quick):
    """Processes of 0.1.0 know no leases; and a lease may end."""
    put_in()
    reserved = reserve(faber)
    SpareKey.objects.update(leased_until=timezone.now() - timedelta(seconds=1))
    again = reserve(faber)
    assert refusal(Unavailable, reserved.use).code == "key_not_ready"
    reserved.give_back()
    assert key_queue.free_keys().count() == 0
    SpareKey.objects.all().delete()
    assert refusal(Unavailable, again.use).code == "key_not_ready"


@pytest.mark.parametrize("damage", [{}, {"private": {}}, {"public": None}])
def test_a_key_that_is_public_or_damaged_is_deleted(faber, damage, caplog):
    put_in(**damage)
    assert refusal(Unavailable, reserve, faber).code == "key_not_ready"
    assert SpareKey.objects.count() == 0
    [line] = [one for one in caplog.records if one.levelname == "ERROR"]
    assert "cannot be used" in line.getMessage() and not line.exc_info


def test_a_key_that_takes_too_long_goes_back(faber, quick):
    put_in()
    late = Mock(side_effect=TimeoutError("too busy"))
    quick.setattr("wallets.anoncreds.issuing.run_resizing", late)
    assert refusal(Unavailable, reserve, faber).code == "key_not_ready"
    assert key_queue.free_keys().count() == 1


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["import os; os.kill(os.getpid(), 9)", "1 / 0"])
def test_a_key_goes_back_when_its_program_fails(faber, monkeypatch, killed, tmp_path):
    program = tmp_path / "resizing.py"
    program.write_text(killed)
    monkeypatch.setattr(issuing, "RESIZING", str(program))
    monkeypatch.setattr(key_pool, "PUBLIC_KEYS", frozenset())
    put_in()
    assert refusal(Unavailable, reserve, faber).code == "key_not_ready"
    assert key_queue.free_keys().count() == 1


@pytest.mark.parametrize("names", [["Name", "name"], ["master_secret"]])
def test_a_schema_that_no_key_fits_costs_none(faber, monkeypatch, names):
    """Our API publishes no such schema; other agents do, on remote ledgers."""

    def run_here(given):
        primes = (int(given[name]) for name in "pq")
        return make_primary_key(*primes, given["labels"])

    monkeypatch.setattr(issuing, "run_resizing", run_here)
    monkeypatch.setattr(key_pool, "PUBLIC_KEYS", frozenset())
    monkeypatch.setitem(SCHEMA, "attrNames", names)
    put_in()
    assert refusal(Invalid, reserve, faber).code == "invalid_definition"
    assert key_queue.free_keys().count() == 1


def test_new_rows_are_for_one_attribute_as_processes_of_0_1_0_take_them(quick):
    [spare] = put_in()
    assert spare.attributes == 1


@contextmanager
def waiting_definition(faber):
    """Yield the future of a definition that waits for a key."""
    with ThreadPoolExecutor(1) as threads:
        defined = threads.submit(in_thread, lambda: faber.defines("a", "b"))
        eventually(lambda: KeyRequest.objects.exists())
        yield defined


def test_a_definition_waits_for_its_key(faber, quick):
    with waiting_definition(faber) as defined:
        assert not defined.done()
        put_in()
        assert defined.result(20)["definitionId"]


def test_a_definition_that_waited_is_refused_once_the_organization_is_frozen(
    faber, quick
):
    with waiting_definition(faber) as defined:
        Tenant.objects.update(frozen_at=timezone.now())
        put_in()
        assert_error(defined.result(20), 503, "organization_frozen")
    assert CredentialDefinition.objects.count() == 0
    assert key_queue.free_keys().count() == 1


def test_who_may_not_wait_is_told_when_to_come_again(faber, quick, impatient, caplog):
    body = {"name": "a", "version": "1", "attributes": ["a", "b"]}
    response = faber.send("post", "/definitions/credentials", body)
    assert response.status_code == 503
    assert response.json()["code"] == "key_not_ready"
    assert int(response["Retry-After"]) == 4
    assert not [one for one in caplog.records if one.levelname == "ERROR"]
    put_in()
    assert faber.post("/definitions/credentials", body)["definitionId"]
    assert CredentialDefinition.objects.count() == 1
