"""A ledger that is down, slow or behind: nothing is half done, all is finished."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count

import pytest
import requests
from django.test import override_settings
from indy_vdr import ledger

from agency.command_line import processes as product_processes
from core.call import this_call
from core.errors import Invalid
from credentials.ledgers import ledger_of
from credentials.ledgers.indy import IndyLedger, pool, reads
from credentials.ledgers.local import published_body
from credentials.models import (
    Credential,
    CredentialDefinition,
    Publication,
    PublishedObject,
    RevocationRegistry,
    Schema,
)
from credentials.tasks import finish_what_was_left_behind, publish_on_ledgers
from tenants.models import IdempotencyLease
from tests.interop.test_networks import VALUES, beside, verdict
from tests.support.errors import assert_error, error_of
from tests.support.people import Organization
from tests.support.processes import eventually, processes
from wallets import key_generator

DEGREE = {"name": "Degree", "version": "1.0", "supportRevocation": True}
SCHEMA, DEFINITION, REGISTRY, ENTRY = "101", "102", "113", "114"
LONG_AGO = "2026-01-01T00:00Z"
PENDING = Publication.Status.PENDING


@pytest.fixture(autouse=True)
def impatient(settings):
    settings.LEDGER_TIMEOUT = 8
    yield
    pool.process_pools().no_response_until.clear()


@pytest.fixture
def faber(network, stored_keys):
    return Organization("Faber College", network_id=network.pk)


def time_passes():
    """All that waits is due and free, and the ledger is asked again."""
    pool.process_pools().no_response_until.clear()
    Publication.objects.filter(status=PENDING).update(due_at=LONG_AGO, lease_until=None)
    Credential.objects.update(updated_at=LONG_AGO)
    IdempotencyLease.objects.update(leased_until=LONG_AGO)


def defines(organization):
    return organization.defines(*VALUES, **DEGREE)


def made():
    return [
        m.objects.count() for m in (Schema, CredentialDefinition, RevocationRegistry)
    ]


def loses_the_reply(monkeypatch, number):
    """The ledger accepts the write of this number, counted from now.

    Its response is lost.
    """
    send, numbers = pool.send, count(1)

    def sends(network, request, is_write=False):
        answer = send(network, request, is_write)
        if is_write and next(numbers) == number:
            raise pool.no_response(network)
        return answer

    monkeypatch.setattr(pool, "send", sends)


def away(network, request, is_write=False):
    raise pool.no_response(network)


def written_since(network, sequence):
    """The types of the ledger's transactions from this number on."""
    types = []
    while True:
        request = ledger.build_get_txn_request(None, 1, sequence + len(types))
        data = pool.send(network, request)["data"]
        if not data:
            return types
        types.append(data["txn"]["type"])


def number_of_the_schema():
    return PublishedObject.objects.get(kind="schema").sequence


def test_three_of_four_validators_are_enough(faber, indy_pool):
    with indy_pool.without(4):
        definition = defines(faber)
        alice = faber.hosts()
        alice.receives(faber, definition, VALUES)
        faber.delete(f"/credentials/{faber.get('/credentials')[0]['credentialId']}")
        assert verdict(faber, alice) is False


def test_with_two_of_four_a_definition_waits_and_is_finished_later(faber, indy_pool):
    with indy_pool.without(3, 4), override_settings(LEDGER_TIMEOUT=2):
        assert_error(error_of(defines, faber), 503, "ledger_unavailable")
    assert made() == [0, 0, 0] and faber.get("/definitions/credentials") == []
    [waiting] = Publication.objects.filter(kind="definition")
    assert waiting.step == "submitted" and waiting.last_error == "ledger_unavailable"
    time_passes()
    publish_on_ledgers()
    [definition] = faber.get("/definitions/credentials")
    assert defines(faber) == definition
    assert made() == [1, 1, 1] and not Publication.objects.filter(status=PENDING)
    assert faber.hosts().receives(faber, definition, VALUES)


@pytest.fixture
def defined_later(faber, monkeypatch):
    """A definition was asked for while nothing could be read, and is there now."""
    with monkeypatch.context() as patch:
        patch.setattr(pool, "send", away)
        assert_error(error_of(defines, faber), 503, "ledger_unavailable")
        assert Publication.objects.get(kind="definition").step == "submitted"
    time_passes()
    publish_on_ledgers()


def test_a_definition_is_kept_also_while_nothing_can_be_read(faber, defined_later):
    assert faber.get("/definitions/credentials") == [defines(faber)]


def test_a_definition_that_was_deleted_before_its_result_was_asked_for_is_not_given(
    faber, defined_later
):
    [deleted] = faber.get("/definitions/credentials")
    faber.delete(f"/definitions/credentials/{deleted['definitionId']}")
    assert defines(faber)["definitionId"] not in ("", deleted["definitionId"])


def test_a_definition_that_cannot_be_written_is_refused_for_good(faber, monkeypatch):
    def refuses(self, definition, tag):
        raise Invalid("invalid_definition", "It is none.")

    with monkeypatch.context() as patch:
        patch.setattr(IndyLedger, "publish_definition", refuses)
        assert_error(error_of(defines, faber), 400, "invalid_definition")
    job = Publication.objects.get(kind="definition")
    assert (job.status, job.material) == ("exhausted", None)
    assert defines(faber), "its tag is free again"


def test_with_two_of_four_a_revocation_waits_and_is_listed_later(faber, indy_pool):
    alice = faber.hosts()
    alice.receives(faber, defines(faber), VALUES)
    path = f"/credentials/{faber.get('/credentials')[0]['credentialId']}"
    with indy_pool.without(3, 4), override_settings(LEDGER_TIMEOUT=2):
        assert_error(error_of(faber.delete, path), 503, "ledger_unavailable")
    assert faber.get(path)["state"] == "Revoked"
    assert alice.newest("credentials")["state"] == "Issued"
    time_passes()
    finish_what_was_left_behind()
    assert alice.newest("credentials")["state"] == "Revoked"
    assert verdict(faber, alice) is False


def test_an_organization_is_made_while_the_ledger_is_away(
    network, stored_keys, monkeypatch
):
    with monkeypatch.context() as patch:
        patch.setattr(pool, "send", away)
        faber = Organization("Faber College", network_id=network.pk)
        status = faber.get("/tenants/issuerStatus")
        assert (
            not status["issuerRegistered"] and "does not respond" in status["problem"]
        )
    time_passes()
    publish_on_ledgers()
    assert faber.get("/tenants/issuerStatus")["issuerRegistered"] is True
    assert defines(faber)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_write_whose_reply_is_lost_is_not_repeated(
    faber, network, monkeypatch, number
):
    loses_the_reply(monkeypatch, number)
    assert_error(error_of(defines, faber), 503, "ledger_unavailable")
    assert made() == [0, 0, 0]
    time_passes()
    definition = defines(faber)
    assert faber.get("/definitions/credentials") == [definition] and made() == [
        1,
        1,
        1,
    ]
    types = written_since(network, number_of_the_schema())
    assert types == [SCHEMA, DEFINITION, REGISTRY, ENTRY]
    assert faber.hosts().receives(faber, definition, VALUES)


def test_a_revocation_whose_reply_is_lost_is_not_repeated(faber, network, monkeypatch):
    alice = faber.hosts()
    alice.receives(faber, defines(faber), VALUES)
    path = f"/credentials/{faber.get('/credentials')[0]['credentialId']}"
    loses_the_reply(monkeypatch, 1)
    assert_error(error_of(faber.delete, path), 503, "ledger_unavailable")
    time_passes()
    faber.delete(path)
    assert alice.newest("credentials")["state"] == "Revoked"
    types = written_since(network, number_of_the_schema())
    assert types == [SCHEMA, DEFINITION, REGISTRY, ENTRY, ENTRY]


@pytest.mark.parametrize("kind", ["schema", "definition", "registry", "status_list"])
def test_a_read_is_repeated_until_it_shows_the_write(faber, monkeypatch, kind):
    read, writes, send = getattr(reads, f"fetch_{kind}"), [], pool.send
    stale = [None] * 3

    def sends(network, request, is_write=False):
        writes.extend([request] * is_write)
        return send(network, request, is_write)

    def behind(*arguments):
        return stale.pop() if writes and stale else read(*arguments)

    monkeypatch.setattr(pool, "send", sends)
    monkeypatch.setattr(reads, f"fetch_{kind}", behind)
    assert faber.hosts().receives(faber, defines(faber), VALUES)
    assert not stale


@pytest.mark.parametrize("kind", ["schema", "definition", "registry"])
def test_one_validator_that_is_behind_does_not_hide_what_others_wrote(
    faber, network, monkeypatch, kind
):
    defines(faber)
    object_id = PublishedObject.objects.get(kind=kind).object_id
    PublishedObject.objects.all().delete()
    published_body.cache_clear()
    read, stale = getattr(reads, f"fetch_{kind}"), [None] * 2
    monkeypatch.setattr(
        reads, f"fetch_{kind}", lambda *asked: stale.pop() if stale else read(*asked)
    )
    name = "revocation_registry" if kind == "registry" else kind
    assert getattr(ledger_of(network), name)(object_id)


def test_issuing_needs_no_ledger(faber, monkeypatch):
    definition, alice = defines(faber), faber.hosts()
    monkeypatch.setattr(pool, "send", away)
    alice.receives(faber, definition, VALUES)
    assert alice.newest("credentials")["state"] == "Issued"


def test_a_thread_that_waits_for_the_ledger_is_idle(network, indy_pool, monkeypatch):
    counted = []
    monkeypatch.setattr(this_call, "count_idle", counted.append)
    assert ledger_of(network).schema(f"{indy_pool.trustee}:2:Nothing:1.0") is None
    assert counted and counted == [+1, -1] * (len(counted) // 2)


def test_absence_is_not_remembered_and_what_was_seen_is(
    network, indy_pool, monkeypatch
):
    registry, did = ledger_of(network), indy_pool.trustee
    body = {"ver": "1.0", "id": f"{did}:2:Late {time.time_ns()}:1.0", "version": "1.0"}
    body |= {"name": body["id"].split(":")[2], "attrNames": ["level"]}
    assert registry.schema(body["id"]) is None
    indy_pool.as_trustee(ledger.build_schema_request, body)
    found = registry.schema(body["id"])
    assert found["attrNames"] == ["level"]
    published_body.cache_clear()
    monkeypatch.setattr(pool, "send", away)
    assert registry.schema(body["id"]) == found


def test_a_job_that_fails_unforeseen_does_not_stop_the_others(faber, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(pool, "send", away)
        for name in ("First", "Second"):
            body = {"name": name, "version": "1.0", "attributeNames": ["level"]}
            assert error_of(faber.post, "/definitions/schemas", body).status == 503
    publish = IndyLedger.publish_schema

    def fails(self, body):
        return 1 / 0 if body["name"] == "First" else publish(self, body)

    monkeypatch.setattr(IndyLedger, "publish_schema", fails)
    time_passes()
    publish_on_ledgers()
    assert [schema.name for schema in Schema.objects.all()] == ["Second"]
    assert Publication.objects.get(status=PENDING).last_error == "internal_error"


@contextmanager
def worker(**environment):
    """The worker of the product, on the database of the test."""
    command = [sys.executable, "-m", *product_processes()["worker"].split()]
    process = subprocess.Popen(command, env=beside(environment), start_new_session=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_a_worker_that_is_killed_after_a_write_leaves_the_rest_to_the_next(
    faber, network, monkeypatch
):
    with monkeypatch.context() as patch:
        loses_the_reply(patch, 1)
        assert_error(error_of(defines, faber), 503, "ledger_unavailable")
    time_passes()
    publish_on_ledgers.delay()
    with worker(FAULT_INJECTION="1", FAULT_POINT="ledger-written") as process:
        assert process.wait(60) == -9
    [waiting] = Publication.objects.filter(kind="definition")
    assert waiting.step == "submitted" and made() == [0, 0, 0]
    time_passes()
    publish_on_ledgers.delay()
    with worker():
        eventually(lambda: made() == [1, 1, 1], 60)
    types = written_since(network, number_of_the_schema())
    assert types == [SCHEMA, DEFINITION, REGISTRY, ENTRY]


@pytest.fixture
def web(tmp_path):
    """A function that starts the web server of the Procfile on the test's database."""
    servers = beside({"LEDGER_TIMEOUT": "60"})
    names = ("DATABASE_URL", "REDIS_URL", "LEDGER_TIMEOUT")
    with processes(tmp_path, **{name: servers[name] for name in names}) as run:

        def start(**given):
            run.start_web(**given)
            return run

        yield start


def defines_by(run, organization):
    """Ask the running web server for a definition, always with the same key."""
    body = DEGREE | {"attributes": [*VALUES]}
    key = {"Idempotency-Key": "degree"}
    return organization.at(run.url).send(
        "post", "/definitions/credentials", body, **key
    )


def kills_while_it_waits(run, organization, indy_pool):
    """The ledger gets the first write while it cannot order it."""
    waiting = Publication.objects.filter(kind="definition").exclude(object_id="")
    with indy_pool.without(3, 4), ThreadPoolExecutor(1) as caller:
        call = caller.submit(defines_by, run, organization)
        eventually(waiting.exists, 60)
        run.kill("web")
        assert isinstance(call.exception(), requests.ConnectionError)


def dies_after_a_write(run, organization, indy_pool):
    with pytest.raises(requests.ConnectionError):
        defines_by(run, organization)
    run.kill("web")  # its master would start it again


@pytest.mark.parametrize(
    "fault, dies",
    [("", kills_while_it_waits), ("ledger-written", dies_after_a_write)],
    ids=["while it waits", "after a write"],
)
def test_a_web_server_killed_at_the_ledger_leaves_one_result(
    faber, network, indy_pool, web, fault, dies
):
    key_generator.make_key()
    dies(web(FAULT_POINT=fault), faber, indy_pool)
    assert made() == [0, 0, 0] and faber.get("/definitions/credentials") == []
    assert Publication.objects.get(kind="definition", status=PENDING)
    time_passes()
    run = web()
    first, again = defines_by(run, faber), defines_by(run, faber)
    assert first.status_code == 200, first.text
    assert (again.status_code, again.content) == (200, first.content)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert faber.get("/definitions/credentials") == [first.json()]
    assert made() == [1, 1, 1]
    types = written_since(network, number_of_the_schema())
    assert types == [SCHEMA, DEFINITION, REGISTRY, ENTRY]
    assert faber.hosts().receives(faber, first.json(), VALUES)
