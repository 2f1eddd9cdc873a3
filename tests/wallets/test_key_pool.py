"""The key pool: keys made ahead, each used once, as good as new ones."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from unittest.mock import Mock

import pytest
from django.db import connection
from django.utils import timezone

from agency.core import fair_pool
from agency.core.errors import Unavailable
from credentials.models import CredentialDefinition
from tenants import vault
from tenants.models import Tenant
from tests.fixtures import stored
from tests.support.errors import assert_error, error_of
from tests.support.people import Organization
from tests.support.processes import eventually
from tests.support.races import at_once, elsewhere, in_thread
from wallets import anoncreds, key_pool, tasks
from wallets.models import KeyDemand, SpareKey

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"Full Name": "Alice", "level": "7"}


@pytest.fixture
def faber():
    return Organization("Faber")


@pytest.fixture
def no_new_keys(monkeypatch):
    """Whoever makes a key instead of taking one fails."""
    failing = Mock(side_effect=AssertionError("a new key was made"))
    monkeypatch.setattr("wallets.anoncreds.create_definition", failing)


@pytest.fixture
def impatient(monkeypatch):
    """Whoever waits for a key looks once more, and gives up."""
    monkeypatch.setattr(key_pool, "WAIT_SECONDS", 0.0)
    monkeypatch.setattr(key_pool, "POLL_SECONDS", 0.01)


def put_in(count=1):
    """Spare keys for two attributes, made before."""
    one = stored("badge")
    for _ in range(count):
        spare = SpareKey(attributes=2)
        parts = {
            "public": one.public,
            "private": one.private,
            "key_proof": one.key_proof,
        }
        vault.seal(spare, "parts", parts)
        spare.save(force_insert=True)


@pytest.mark.parametrize("revocable", [True, False])
def test_a_definition_takes_a_key_and_its_credentials_verify(
    faber, no_new_keys, revocable
):
    put_in()
    definition = faber.defines("Full Name", "level", supportRevocation=revocable)
    assert SpareKey.objects.count() == 0
    if not revocable:
        alice = faber.hosts()
        alice.receives(faber, definition, VALUES)
        asked = faber.asks(alice, attributes=[{"policyName": "Full Name"}])
        alice.auto_selects()
        read = faber.get(f"/verifications/{asked['verificationId']}")
        assert read["isValid"] is True
    assert CredentialDefinition.objects.get().supports_revocation is revocable


def test_each_key_is_taken_once(faber, no_new_keys):
    put_in(2)
    answers = at_once(*[lambda: faber.defines("a", "b") for _ in range(2)])
    assert SpareKey.objects.count() == 0
    for answer in answers:
        row = CredentialDefinition.objects.get(definition_id=answer["definitionId"])
        assert vault.unseal(row, "private_key")


def test_a_definition_that_fails_leaves_the_key_in_the_pool(
    faber, no_new_keys, monkeypatch
):
    put_in()
    failing = Mock(side_effect=ZeroDivisionError)
    monkeypatch.setattr("credentials.publishing.publish_definition", failing)
    body = {"name": "a", "version": "1", "attributes": ["a", "b"]}
    assert faber.send("post", "/definitions/credentials", body).status_code == 500
    assert failing.called and SpareKey.objects.count() == 1


@contextmanager
def waiting_definition(faber):
    """Yield the future of a definition that waits for a key of its size."""
    with ThreadPoolExecutor(1) as threads:
        defined = threads.submit(in_thread, lambda: faber.defines("a", "b"))
        eventually(lambda: KeyDemand.objects.filter(pk=2).exists())
        yield defined


def test_a_new_number_of_attributes_waits_for_the_process_that_makes_keys(
    faber, no_new_keys
):
    with waiting_definition(faber) as defined:
        assert not defined.done()
        put_in()
        assert defined.result(20)["definitionId"]
    assert key_pool.missing_keys().count(2) == 1


def test_a_definition_that_waited_is_refused_once_the_organization_is_frozen(
    faber, no_new_keys
):
    with waiting_definition(faber) as defined:
        Tenant.objects.update(frozen_at=timezone.now())
        put_in()
        assert_error(defined.result(20), 503, "organization_frozen")
    assert CredentialDefinition.objects.count() == 0
    assert SpareKey.objects.count() == 1


def test_who_waits_too_long_is_told_to_come_again_and_gets_one_definition(
    faber, no_new_keys, impatient
):
    assert_error(error_of(faber.defines, "a", "b"), 503, "key_not_ready")
    put_in()
    assert faber.defines("a", "b")["definitionId"]
    assert CredentialDefinition.objects.count() == 1


def test_so_many_threads_wait_for_keys_and_no_more(faber, no_new_keys, settings):
    assert settings.WEB_THREADS // 4 == 1
    with key_pool.waiters.admit("another organization"):
        error = error_of(faber.defines, "a", "b")
    assert error.code == "key_not_ready"
    assert key_pool.missing_keys()[0] == 2


def test_who_waits_for_a_key_calls_the_worker_once_and_is_idle_and_who_is_refused_not(
    impatient, monkeypatch
):
    called, counted = [], []
    monkeypatch.setattr(key_pool, "notify_worker", called.append)
    monkeypatch.setattr(fair_pool._thread, "count_idle", counted.append, raising=False)
    for _ in range(3):
        with key_pool.waiters.admit("faber"), pytest.raises(Unavailable):
            key_pool.await_key(2, "faber")
    assert called == counted == []
    with pytest.raises(Unavailable):
        key_pool.await_key(2, "faber")
    assert called == ["wallets.tasks.fill_key_pool"] and counted == [+1, -1]


def test_it_makes_what_is_missing_and_no_more(settings, monkeypatch):
    one = stored("badge")
    made = anoncreds.Definition(one.public, one.private, one.key_proof)
    monkeypatch.setattr("wallets.anoncreds.create_definition", lambda **parts: made)
    settings.KEY_POOL_SIZE, settings.KEY_POOL_ATTRIBUTES = 2, [1, 2]
    put_in()
    assert key_pool.missing_keys() == [1, 1, 2]
    assert key_pool.fill_pool(report=str) == 3
    assert key_pool.missing_keys() == [] and key_pool.fill_pool(report=str) == 0


def test_only_one_process_makes_keys(settings):
    settings.KEY_POOL_SIZE = 1
    assert key_pool.lock_filling()
    try:
        assert elsewhere(lambda: key_pool.fill_pool(report=str)) == 0
    finally:
        key_pool.unlock_filling()


@pytest.mark.slow
def test_a_credential_of_a_relabelled_key_verifies_with_nothing_but_the_library():
    one, names = stored("badge"), ["Größe", "with space and Capitals"]
    schema = one.schema | {"name": "Other", "attrNames": names}
    schema_id = f"{one.schema['issuerId']}:2:Other:1.0"
    parts = json.loads(json.dumps([one.public, one.private, one.key_proof]))
    made = key_pool.relabel_key(
        anoncreds.Definition(*parts),
        schema_id,
        schema,
        one.schema["issuerId"],
        "x",
        False,
    )
    definition_id = f"{one.schema['issuerId']}:3:CL:9:x"
    presentation, request = present_first_name(
        made, schema_id, definition_id, schema, names
    )
    script = (
        "import anoncreds, json, sys\n"
        "p, r, s, d = json.load(sys.stdin)\n"
        "load = anoncreds.Presentation.load(p)\n"
        "print(load.verify(anoncreds.PresentationRequest.load(r), s, d))"
    )
    given = json.dumps(
        [presentation, request, {schema_id: schema}, {definition_id: made.public}]
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.stdout.strip() == "True", ran.stderr


def test_no_process_is_started_while_another_makes_keys(monkeypatch):
    key_pool.record_demand(2)
    run = Mock(return_value=Mock(returncode=0))
    monkeypatch.setattr(tasks.subprocess, "run", run)
    with ThreadPoolExecutor(1) as another:
        assert another.submit(key_pool.lock_filling).result()
        tasks.fill_key_pool()
        assert not run.called
        another.submit(key_pool.unlock_filling).result()
        another.submit(lambda: connection.close()).result()  # its own
    tasks.fill_key_pool()
    [[command]] = [call.args for call in run.call_args_list]
    assert command[-1] == "fill_key_pool"


@pytest.mark.parametrize(
    "result, level, text",
    [
        ({"return_value": Mock(returncode=3)}, "ERROR", "exit code 3"),
        ({"side_effect": subprocess.TimeoutExpired("", 1)}, "INFO", ""),
    ],
    ids=["it fails", "it takes too long, and is gone on with next time"],
)
def test_a_run_that_does_not_succeed_is_logged(
    monkeypatch, caplog, result, level, text
):
    key_pool.record_demand(2)
    monkeypatch.setattr(tasks.subprocess, "run", Mock(**result))
    tasks.fill_key_pool()
    [line] = [one for one in caplog.records if one.name == "wallets.tasks"]
    assert line.levelname == level and text in line.getMessage()


def present_first_name(made, schema_id, definition_id, schema, names):
    """Return (presentation, request) for the first name of a new credential."""
    secret = anoncreds.create_link_secret()
    offer = anoncreds.create_offer(schema_id, definition_id, made.key_proof)
    asked, metadata = anoncreds.create_request(
        offer, made.public, secret, schema["issuerId"]
    )
    values = dict.fromkeys(names, "7")
    signed = anoncreds.create_credential(
        made.public, made.private, offer, asked, values
    )
    held = anoncreds.process_credential(signed, metadata, secret, made.public)
    request = {
        "name": "r",
        "version": "1.0",
        "nonce": anoncreds.generate_nonce(),
        "requested_attributes": {"x": {"name": names[0]}},
        "requested_predicates": {},
    }
    entries = [anoncreds.SubProof(held, {"x": True}, [])]
    known = ({schema_id: schema}, {definition_id: made.public})
    return anoncreds.create_presentation(request, entries, {}, secret, *known), request
