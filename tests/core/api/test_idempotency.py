"""A write that is sent again with its key: one effect, one answer."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from urllib.parse import urlsplit

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.client import encode_multipart
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from uuid_utils.compat import uuid7

from connections.models import Connection
from connections.protocols import connectionless
from core.errors import Conflict
from credentials.models import Credential
from tenants import idempotency, tasks, vault
from tenants.models import IdempotencyKey, IdempotencyLease
from tests.core.api.writes import everything, operations
from tests.support.erasing import worker_erases
from tests.support.errors import assert_error
from tests.support.people import Organization, Provider
from tests.support.queues import crash_before_the_drain, worker_catches_up
from tests.support.races import at_once, elsewhere, error_codes
from wallets.models import Wallet

pytestmark = pytest.mark.django_db(transaction=True)
OPERATIONS = operations()
SPARE = "0196f3a2-2222-7000-8000-000000000001"
SHOWN_ONCE = {
    "POST /custodian/v1/api/wallets/{walletId}/link",
    "PATCH /provider/v1/tenants/{tenantId}/keys",
    "POST /keys",
    "POST /kiosks",
    "POST /webhooks",
    "POST /webhooks/{webhookId}/secret",
}
# The place in the registry; the rows of a file, which is not shown yet; those of a
# mailing, which is paused; the sample definition, which is used again.
COMMITS_BEFORE = {
    "PUT /credentials/{credentialId}",
    "POST /credentials/bulk",
    "POST /mailings",
    "POST /sandbox/samples",
}
WITHOUT_EFFECT = {
    "POST /mailings/preview",
    "POST /verificationPolicies/try",
    "POST /custodian/v1/api/{walletId}/verifications/fromData/availableCredentials",
}
VALUES = {"name": "Alice", "degree": "Maths", "age": "28"}
SUBSCRIPTION, LITERAL = "X-Streetcred-Subscription-Key", "X-Service-Subscription-Key"


def keyed(caller, path, body=None, key="k1", method="post", form=None, **headers):
    return caller.send(method, path, body, form, **headers | {"Idempotency-Key": key})


def crash(once, row, body):
    raise SystemError("the process is killed here")


@pytest.fixture
def world(world, settings):
    settings.PUBLIC_URL = "https://agency.example.org"  # where a did:webvh can be
    return world


@pytest.fixture
def killed_before_the_answer(monkeypatch):
    """The context of a call whose process is killed after its effect."""

    @contextmanager
    def killed():
        with monkeypatch.context() as patch:
            patch.setattr(idempotency.IdempotentRequest, "_store_response", crash)
            yield patch

    return killed


def offer_of(definition, **more):
    named = {"definitionId": definition["definitionId"], "credentialValues": VALUES}
    return named | more


def takes_offer(holder, offered):
    form = {"credentialData": offered["offerData"]}
    return keyed(holder, "/credentials/fromData", form=form, method="put")


def test_every_write_documents_the_key_and_its_errors():
    for operation in OPERATIONS:
        documented = operation.documented
        parameters = {one["name"]: one for one in documented["parameters"]}
        assert parameters["Idempotency-Key"]["in"] == "header", operation.name
        assert {"409", "422"} <= documented["responses"].keys(), operation.name


def test_every_write_looks_at_the_key_first(faber):
    for operation in OPERATIONS:
        caller, path = faber, operation.path
        if path.startswith("/provider/v1"):
            caller, path = Provider(faber), path.removeprefix("/provider/v1")
        path = re.sub(r"\{\w+\}", SPARE, path)
        for wrong in ("", "x" * 256, "caf\xe9"):
            response = keyed(caller, path, {}, wrong, operation.method.lower())
            assert "Idempotency-Key" in response.json()["errors"], operation.name
            assert_error(response, 400, "invalid_idempotency_key")


def replayed(answer):
    return answer.status_code, answer.content, answer.headers.get("Content-Type")


@pytest.mark.parametrize(
    "header", [SUBSCRIPTION, pytest.param(LITERAL, marks=pytest.mark.slow)]
)
def test_every_write_sent_again_has_one_effect_and_the_same_answer(world, header):
    for operation in OPERATIONS:
        write = operation.ready(world)
        headers = {header: write.caller.headers[SUBSCRIPTION]}
        first = write.send(operation.name, **headers)
        assert first.status_code == 200, f"{operation.name}: {first.content}"
        assert "Idempotency-Replayed" not in first
        before = everything()
        again = write.send(operation.name, **headers)
        assert everything() == before, operation.name
        if operation.name in SHOWN_ONCE:
            assert_error(again, 409, "already_created")
        else:
            assert replayed(again) == replayed(first), operation.name
            assert again["Idempotency-Replayed"] == "true"


@pytest.mark.slow
def test_every_write_killed_before_its_answer_is_kept_is_answered_from_what_it_did(
    world, monkeypatch
):
    acted = set()

    def crash_after(once, row, body):
        acted.update({operation.name} if once.has_performed else ())
        crash(once, row, body)

    for operation in OPERATIONS:
        write = operation.ready(world)
        with monkeypatch.context() as patch:
            patch.setattr(
                idempotency.IdempotentRequest,
                "_store_response",
                crash_after,
            )
            assert write.send(operation.name).status_code == 500, operation.name
        before = everything()
        again = write.send(operation.name)
        assert everything() == before, operation.name
        if operation.name in SHOWN_ONCE:
            assert_error(again, 409, "already_created")
        else:
            assert again.status_code == 200, f"{operation.name}: {again.content}"
            assert write.send(operation.name).content == again.content
    assert {one.name for one in OPERATIONS} - acted == WITHOUT_EFFECT


@pytest.mark.slow
def test_every_write_that_fails_before_it_commits_leaves_its_key_free(
    world, monkeypatch
):
    def fail(*args):
        raise SystemError("the process is killed here")

    for operation in OPERATIONS:
        write = operation.ready(world)
        before = everything()
        with monkeypatch.context() as patch:
            patch.setattr(idempotency.IdempotentRequest, "_claim_key", fail)
            assert write.send(operation.name).status_code == 500
        if operation.name not in COMMITS_BEFORE:
            assert everything() == before, operation.name
        again = write.send(operation.name)
        assert again.status_code == 200 and "Idempotency-Replayed" not in again, (
            operation.name
        )


def test_what_was_answered_is_replayed_though_the_object_has_moved_on(faber):
    body, alice = offer_of(faber.defines(*VALUES)), faber.hosts()
    offered = faber.post("/credentials", body | {"automaticIssuance": True})
    first = takes_offer(alice, offered)
    assert first.json()["state"] == "Issued", "the answer shows what the drain did"
    alice.delete(f"/credentials/{first.json()['credentialId']}")
    again = takes_offer(alice, offered)
    assert again.content == first.content and alice.get("/credentials") == []


def test_what_was_made_and_deleted_is_not_made_again(faber, killed_before_the_answer):
    with killed_before_the_answer():
        keyed(faber, "/connections", {})
    [invited] = faber.get("/connections")
    faber.delete(f"/connections/{invited['connectionId']}")
    assert_error(keyed(faber, "/connections", {}), 409, "already_created")
    assert faber.get("/connections") == []


def test_another_body_path_method_or_dialect_is_another_request(faber):
    connected = keyed(faber, "/connections", {"name": "Alice"})
    stored = {"name": "P", "version": "1", "attributes": [{"policyName": "name"}]}
    literal = {"X-Service-Subscription-Key": faber.made.subscription_key}
    address = f"/verifications/policy/connections/{connected.json()['connectionId']}"
    for response in (
        keyed(faber, "/connections", {"name": "Bob"}),
        keyed(faber, "/agency/v1/connections", {"name": "Alice"}),
        keyed(faber, "/api/wallets", {"name": "Alice"}),
        keyed(faber, "/connections", {"name": "Alice"}, **literal),
        keyed(faber, address, stored, method="put"),
    ):
        assert_error(response, 422, "idempotency_key_reused")
    assert len(faber.get("/connections")) == 1


def test_the_order_of_members_and_the_boundary_of_a_form_do_not_count(faber):
    one = keyed(faber, "/connections", {"name": "Alice", "multiParty": True})
    other = keyed(faber, "/connections", {"multiParty": True, "name": "Alice"})
    assert one.content == other.content and len(faber.get("/connections")) == 1
    alice, invitation = faber.hosts(), one.json()["invitation"]
    for boundary in ("first", "second"):
        form = encode_multipart(boundary, {"invitation": invitation})
        accepted = alice.client.post(
            f"{alice.prefix}/connections/invitation",
            form,
            content_type=f"multipart/form-data; boundary={boundary}",
            headers=alice.headers | {"Idempotency-Key": "k2"},
        )
        assert accepted.json()["state"] == "Connected"
    assert len(alice.get("/connections")) == 1


def test_each_organization_and_each_provider_has_keys_of_its_own(faber, acme):
    provider = Provider(faber)
    answers = [
        keyed(faber, "/connections", {}),
        keyed(acme, "/connections", {}),
        keyed(provider, "/tenants", {"name": "Branch"}),
    ]
    assert [one.status_code for one in answers] == [200, 200, 200]
    assert [len(one.get("/connections")) for one in (faber, acme)] == [1, 1]
    again = keyed(provider, "/tenants", {"name": "Branch"})
    assert again.content == answers[2].content
    assert len(provider.get("/tenants")) == 1


@pytest.mark.parametrize(
    "is_leased", [True, False], ids=["leased", "by the constraint alone"]
)
def test_of_eight_at_once_one_has_the_effect(faber, monkeypatch, is_leased):
    if not is_leased:
        monkeypatch.setattr(idempotency, "LEASE", timedelta(0))
    alice, definition = faber.hosts(), faber.defines(*VALUES)
    body = offer_of(definition, connectionId=alice.known_as(faber))
    key = {"Idempotency-Key": "k1"}
    answers = at_once(*[lambda: faber.call("post", "/credentials", body, **key)] * 8)
    assert set(error_codes(answers)) <= {"idempotency_in_progress"}
    [made] = {one["credentialId"] for one in answers if isinstance(one, dict)}
    assert [made] == [one["credentialId"] for one in faber.get("/credentials")]
    assert len(alice.get("/credentials")) == 1


def test_while_a_write_runs_its_key_is_busy_and_says_when_to_ask_again(
    faber, monkeypatch
):
    seen, create = [], Wallet.create

    def slow(*args, **fields):
        seen.append(elsewhere(lambda: keyed(faber, "/api/wallets", {})))
        return create(*args, **fields)

    monkeypatch.setattr(Wallet, "create", slow)
    assert keyed(faber, "/api/wallets", {}).status_code == 200
    assert_error(seen[0], 409, "idempotency_in_progress")
    assert seen[0]["Retry-After"] == "1"
    assert len(faber.get("/api/wallets")) == 1


def test_after_an_error_the_key_may_be_used_again(faber):
    for chosen, status in (("not/good", 400), ("good", 200)):
        answer = keyed(faber, "/connections", {"connectionId": chosen})
        assert answer.status_code == status
    invited = faber.invites()
    offer = {"connectionId": invited["connectionId"], "text": "Hello"}
    assert_error(keyed(faber, "/messages", offer, "k2"), 409, "wrong_state")
    faber.hosts().accepts_invitation(invited["invitation"])
    assert keyed(faber, "/messages", offer, "k2").status_code == 200


def test_what_the_other_side_undid_leaves_no_key(faber, acme, monkeypatch):
    """The offer is already taken when the response is built, after the commit."""
    offered = faber.post("/credentials", offer_of(faber.defines(*VALUES)))
    alice, bob = faber.hosts(), acme.hosts()
    monkeypatch.setattr(connectionless, "_find_hosted_link", lambda verkey: None)
    assert takes_offer(alice, offered).status_code == 200
    assert_error(takes_offer(bob, offered), 409, "offer_taken")
    assert not IdempotencyKey.objects.filter(tenant=acme.tenant).exists()
    assert bob.get("/credentials") == []


def test_an_answer_made_before_the_other_side_heard_takes_nothing_back(
    faber, killed_before_the_answer
):
    """Killed before local delivery: the row stays, the worker delivers it."""
    offered = faber.post("/credentials", offer_of(faber.defines(*VALUES)))
    alice = faber.hosts()
    with killed_before_the_answer() as patch:
        crash_before_the_drain(patch)
        takes_offer(alice, offered)
    assert takes_offer(alice, offered).json()["state"] == "Requested"
    worker_catches_up()
    assert faber.get(f"/credentials/{offered['credentialId']}")["state"] == "Requested"


def test_an_error_of_ours_after_the_effect_keeps_the_key(faber, monkeypatch):
    represent = "connections.api.connections.ConnectionContract.to_representation"
    with monkeypatch.context() as patch:
        patch.setattr(represent, lambda *args: 1 / 0)
        assert keyed(faber, "/connections", {}).status_code == 500
    assert keyed(faber, "/connections", {}).json()["state"] == "Invited"
    assert len(faber.get("/connections")) == 1


def test_an_error_on_the_way_back_to_the_object_does_not_free_the_key(
    faber, killed_before_the_answer
):
    """The definition is deleted before the repeated offer: no second offer."""
    body = offer_of(faber.defines(*VALUES))
    with killed_before_the_answer():
        keyed(faber, "/credentials", body)
    faber.delete(f"/definitions/credentials/{body['definitionId']}")
    assert keyed(faber, "/credentials", body).status_code == 404
    assert IdempotencyKey.objects.get().object_id == str(Credential.objects.get().pk)


KILLED = """
import os, signal, sys, django
django.setup()
from django.test import Client
from tenants import idempotency
step, token, subscription = sys.argv[1:]
setattr(idempotency.IdempotentRequest, step, lambda *args: os.kill(os.getpid(), signal.SIGKILL))
headers = {"Authorization": f"bearer {token}", "X-Scrd-Api-Key": subscription}
Client(headers=headers | {"Idempotency-Key": "k1"}).post("/connections", "{}", "application/json")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("step", "kept"), [("_claim_key", 0), ("_store_response", 1)])
def test_a_killed_process_leaves_a_key_with_its_effect_or_neither(faber, step, kept):
    url = urlsplit(os.environ["DATABASE_URL"])._replace(
        path=f"/{connection.settings_dict['NAME']}"
    )
    environment = os.environ | {"DATABASE_URL": url.geturl(), "ALLOWED_HOSTS": "*"}
    command = [sys.executable, "-c", KILLED, step]
    command += [faber.made.access_token, faber.made.subscription_key]
    killed = subprocess.run(command, env=environment, timeout=60, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert Connection.objects.count() == IdempotencyKey.objects.count() == kept
    busy = keyed(faber, "/connections", {})
    assert_error(busy, 409, "idempotency_in_progress")
    leases = IdempotencyLease.objects.filter(leased_until__lt=Now() + idempotency.LEASE)
    assert leases.update(leased_until=Now()), "it ends by itself"
    answer = keyed(faber, "/connections", {})
    assert answer.headers.get("Idempotency-Replayed") == ("true" if kept else None)
    assert [answer.json()["connectionId"]] == [
        c["connectionId"] for c in faber.get("/connections")
    ]


class FormerRequest(idempotency.IdempotentRequest):
    """A write as a process of 0.1.0 handles it: its lock belongs to the session."""

    @contextmanager
    def _hold_lease(self):
        name = f"{self.owner_id} {self.key}"
        if not self.call("pg_try_advisory_lock", name):
            raise idempotency.in_progress_error()
        self.row = IdempotencyKey.objects.filter(**self.owner, key=self.key).first()
        try:
            yield
        finally:
            self.call("pg_advisory_unlock", name)

    def call(self, function, name):
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {function}(hashtextextended(%s, 0))", [name])
            return cursor.fetchone()[0]

    def _store_response(self, row, body):
        answer = vault.sealed_value(row, "answer", {"body": body})
        rows = IdempotencyKey.objects.filter(pk=row.pk)
        rows.update(answer=answer, updated_at=timezone.now())


def create_wallet(kind, tenant, key):
    """Make a wallet by a request of this kind. Return the response's body."""
    request = kind({"tenant": tenant}, key, "POST /wallets", b"fingerprint")
    body, _ = request.respond(
        lambda: {"id": str(request.perform(Wallet.create, tenant, owner_name=key).pk)}
    )
    return body["id"]


def test_a_key_at_a_process_of_the_former_version_too_has_one_effect(faber):
    both = (FormerRequest, idempotency.IdempotentRequest)
    won = Counter()
    for number in range(200):
        key = f"both {number}"
        results = at_once(
            *(partial(create_wallet, kind, faber.tenant, key) for kind in both)
        )
        assert {*error_codes(results)} <= {"idempotency_in_progress"}
        [made] = {one for one in results if isinstance(one, str)}
        assert [str(one.pk) for one in Wallet.objects.filter(owner_name=key)] == [made]
        assert [create_wallet(kind, faber.tenant, key) for kind in both] == [made] * 2
        won.update(kind for kind, one in zip(both, results, strict=True) if one == made)
    assert won.keys() == {*both}, "each was the first one at times"
    assert not IdempotencyLease.objects.exists()


def test_a_write_that_takes_long_keeps_its_lease_by_heartbeats(faber, monkeypatch):
    create, seen = Wallet.create, []

    def slow(*args, **fields):
        elsewhere(lambda: IdempotencyLease.objects.update(leased_until=Now()))
        elsewhere(idempotency.renew_leases)
        seen.append(elsewhere(lambda: keyed(faber, "/api/wallets", {})))
        return create(*args, **fields)

    monkeypatch.setattr(Wallet, "create", slow)
    assert keyed(faber, "/api/wallets", {}).status_code == 200
    assert_error(seen[0], 409, "idempotency_in_progress")
    assert not IdempotencyLease.objects.exists()
    idempotency.renew_leases()
    assert not IdempotencyLease.objects.exists(), "what was given back stays so"


def test_a_lease_that_another_process_took_over_is_its_own(faber, monkeypatch):
    other, create = uuid7(), Wallet.create

    def slow(*args, **fields):
        IdempotencyLease.objects.update(holder=other)
        return create(*args, **fields)

    monkeypatch.setattr(Wallet, "create", slow)
    assert keyed(faber, "/api/wallets", {}).status_code == 200
    assert IdempotencyLease.objects.get().holder == other


def test_leases_of_killed_processes_are_deleted(faber):
    ago = Now() - timedelta(minutes=1)
    for until in (ago, Now() + timedelta(seconds=1)):
        IdempotencyLease.objects.create(id=uuid7(), holder=uuid7(), leased_until=until)
    tasks.delete_old_idempotency_keys()
    assert IdempotencyLease.objects.filter(leased_until__gt=Now()).exists()
    assert IdempotencyLease.objects.count() == 1


def test_a_key_costs_one_statement_before_its_write_and_two_for_its_row(faber):
    keyed(faber, "/api/wallets", {})
    with CaptureQueriesContext(connection) as plain:
        faber.post("/api/wallets", {})
    with CaptureQueriesContext(connection) as with_key:
        keyed(faber, "/api/wallets", {}, "k2")
    more = [one["sql"] for one in with_key if "tenants_idempotency" in one["sql"]]
    assert len(more) == 3
    assert len(with_key) - len(plain) <= 5, "with a transaction and a savepoint"


def test_other_methods_and_writes_without_a_key_leave_nothing(faber):
    connection_id = faber.invites()["connectionId"]
    faber.call("get", f"/connections/{connection_id}", **{"Idempotency-Key": "k1"})
    faber.call("delete", f"/connections/{connection_id}", **{"Idempotency-Key": "k1"})
    assert not IdempotencyKey.objects.exists()


def test_keys_are_forgotten_after_a_day_in_steps_and_may_be_used_again(
    faber, monkeypatch
):
    monkeypatch.setattr(idempotency, "BATCH", 2)
    for number in range(5):
        keyed(faber, "/connections", {}, f"old {number}")
    now, keys = timezone.now(), IdempotencyKey.objects
    keys.update(created_at=now - timedelta(hours=24.1))
    keys.filter(key="old 4").update(created_at=now - timedelta(hours=23.9))
    tasks.delete_old_idempotency_keys()
    assert [one.key for one in IdempotencyKey.objects.all()] == ["old 4"]
    assert "Idempotency-Replayed" not in keyed(faber, "/connections", {}, "old 0")


def test_a_write_has_one_effect(faber):
    given = ({"tenant": faber.tenant}, "k1", "", b"")
    once, again = (idempotency.IdempotentRequest(*given) for _ in "ab")
    once.perform(lambda: None)
    with pytest.raises(AssertionError):
        once.perform(lambda: None)
    with pytest.raises(Conflict):
        again.perform(lambda: None)


def test_removing_an_organization_removes_its_keys(faber, settings):
    settings.DELETION_UNDO_HOURS = 0
    gone = Organization("Gone")
    keyed(gone, "/connections", {})
    gone.delete(f"/tenants/{gone.tenant.public_id}")
    worker_erases()
    assert not IdempotencyKey.objects.exists()
