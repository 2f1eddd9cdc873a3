"""Revocation, from the registry to the verifier."""

import time
from datetime import timedelta
from types import SimpleNamespace

import pytest
from django.conf import settings as product
from django.db import OperationalError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from connections.didcomm import message
from connections.models import Connection
from core.errors import Unavailable
from core.work import network_reads, transactions
from credentials import messages, removal, retention, revocation
from credentials.issue_credential import handlers
from credentials.ledgers import ledger_of, published
from credentials.models import (
    Credential,
    CredentialDefinition,
    RevocationRegistry,
    StatusList,
)
from credentials.revocation import allocate_slot, mark_revoked
from credentials.tasks import build_registries, finish_what_was_left_behind
from tenants import vault
from tests.connections.messaging.test_pair_lock import is_free
from tests.support import queues
from tests.support.aging import StoppedClock, age
from tests.support.errors import assert_error, error_of
from tests.support.outside_exchanges import accepts_invitation_of
from tests.support.races import at_once, elsewhere, while_locked
from tests.support.steps import step
from verifications.models import Verification
from verifications.proofs.checks import judge_presentation
from wallets import anoncreds

VALUES = {"Full Name": "Alice", "level": "7"}
POLICY = {"attributes": [{"policyName": "level"}]}
NOW = POLICY | {"revocationRequirement": {"validNow": True}}


@pytest.fixture
def small(settings, monkeypatch):
    """Registries of four, whose first lists are older than whatever follows."""
    settings.REVOCATION_FIRST_REGISTRY_SIZE = settings.REVOCATION_REGISTRY_SIZE = 4
    earlier = SimpleNamespace(time=lambda: time.time() - 10)
    monkeypatch.setattr("credentials.registries.time", earlier)
    return settings


@pytest.fixture
def faber(small, faber):
    return faber


@step
def badge(faber):
    return faber.defines("Full Name", "level", supportRevocation=True)


@step
def alice(faber):
    alice = faber.hosts()
    alice.meets(faber)
    return alice


@step
def one(faber, badge, alice):
    return issue(faber, alice, badge)[0]


@step
def three(faber, badge, alice):
    return issue(faber, alice, badge, 3)


def issue(faber, alice, badge, number=1):
    """Return the organization's credentials, the oldest first."""
    for _ in range(number):
        alice.receives(faber, badge, VALUES)
    return faber.get("/credentials")[::-1]


def revoke(organization, credential):
    organization.delete(f"/credentials/{credential['credentialId']}")


def verdict(organization, holder, policy=NOW, held=None):
    """Whether the proof is valid. held: the id of a credential that is chosen."""
    asked = organization.asks(holder, **policy)
    if held:
        seen = holder.newest("verifications")["verificationId"]
        chosen = [{"policyName": "level", "credentialId": held}]
        holder.put(f"/verifications/{seen}", chosen)
    else:
        holder.auto_selects()
    return organization.get(f"/verifications/{asked['verificationId']}")["isValid"]


def at_moment(timestamp):
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(timestamp))
    return POLICY | {"revocationRequirement": {"validAt": moment}}


def newest_list():
    return StatusList.objects.latest("timestamp").body["revocationList"]


def test_a_credential_is_revoked_on_both_sides_and_proves_nothing(
    faber, badge, alice, one
):
    """Not even if it is chosen. It did before, and a later one does."""
    held = alice.newest("credentials")["credentialId"]
    assert verdict(faber, alice) is True
    before = StatusList.objects.get().timestamp
    revoke(faber, one)
    path = f"/credentials/{one['credentialId']}"
    assert faber.get(path)["state"] == "Revoked"
    assert alice.newest("credentials")["state"] == "Revoked"
    assert verdict(faber, alice) is False
    assert verdict(faber, alice, NOW, held) is False
    assert verdict(faber, alice, at_moment(before), held) is True
    alice.receives(faber, badge, VALUES | {"level": "8"})
    assert verdict(faber, alice) is True


def test_a_list_that_was_folded_proves_as_before(faber, alice, three, monkeypatch):
    monkeypatch.setattr(published, "month_start", lambda timestamp: 0)
    for credential in three[:2]:
        revoke(faber, credential)
        StatusList.objects.update(is_final=True)  # so the next one is another list
    age(StatusList.objects.all(), 30)
    assert retention.fold_lists() == 2
    between = StatusList.objects.get(changed__isnull=False)
    held = [one["credentialId"] for one in alice.get("/credentials")][::-1]
    moment = at_moment(between.timestamp)
    verdicts = [verdict(faber, alice, moment, one) for one in held]
    assert verdicts == [False, True, True]


def test_only_an_issued_revocable_credential_is_revoked(faber, badge, alice):
    offered = faber.offers(alice, badge, VALUES)
    assert_error(error_of(revoke, faber, offered), 409, "wrong_state")
    alice.accepts_offer()
    faber.put(f"/credentials/{offered['credentialId']}")
    revoke(faber, offered)
    assert_error(error_of(revoke, faber, offered), 409, "wrong_state")
    plain = faber.defines("Full Name", "level")
    error = error_of(revoke, faber, issue(faber, alice, plain)[-1])
    assert_error(error, 409, "not_revocable")


@pytest.fixture
def clock(badge, monkeypatch):
    """That of those who publish lists."""
    stopped = StoppedClock()
    monkeypatch.setattr("credentials.revocation.time", stopped)
    return stopped


def test_revocations_at_once_go_into_one_list(faber, badge, alice, clock):
    first, *others = issue(faber, alice, badge, 3)
    revoke(faber, first)
    StatusList.objects.update(is_final=True)  # so the others wait
    lists = StatusList.objects.count()
    at_once(*[lambda one=one: revoke(faber, one) for one in others])
    assert StatusList.objects.count() == lists + 1
    assert newest_list() == [0, 1, 1, 1]
    queues.worker_catches_up()  # one may have told the holder while the other one did
    assert {c["state"] for c in alice.get("/credentials")} == {"Revoked"}


def all_lists():
    lists = StatusList.objects.order_by("timestamp")
    return [(one.timestamp, one.body["revocationList"]) for one in lists]


def test_lists_of_a_second_replace_each_other_until_given(faber, badge, alice, clock):
    started = StatusList.objects.get().timestamp
    for credential in issue(faber, alice, badge, 2):
        revoke(faber, credential)
    published = [(started, [0, 0, 0, 0]), (int(clock.now), [0, 1, 1, 0])]
    assert all_lists() == published and clock.slept == 0
    assert {one["state"] for one in alice.get("/credentials")} == {"Revoked"}
    stored = StatusList.objects.latest("timestamp").body
    assert stored["timestamp"] == int(clock.now)


def test_a_killed_replacement_leaves_the_list(faber, three, clock, monkeypatch):
    first, second, _ = three
    revoke(faber, first)
    lists, replace = all_lists(), StatusList.replace
    with monkeypatch.context() as broken:
        broken.setattr(StatusList, "replace", lambda *of: replace(*of) and 1 / 0)
        path = f"/credentials/{second['credentialId']}"
        assert faber.send("delete", path).status_code == 500
    assert all_lists() == lists
    revoke(faber, second)
    assert [places for _, places in all_lists()] == [[0, 0, 0, 0], [0, 1, 1, 0]]
    assert_error(error_of(revoke, faber, second), 409, "wrong_state")


def path_of_list():
    registry_id = RevocationRegistry.objects.get().registry_id
    return f"/ledger/local/revocation-registries/{registry_id}/status-list"


def test_a_list_that_was_given_is_never_replaced(faber, three, clock, client):
    first, second, _ = three
    revoke(faber, first)
    path = path_of_list()
    moment = int(clock.now)
    given = client.get(f"{path}?timestamp={moment}").json()
    revoke(faber, second)
    assert clock.slept > 0
    assert client.get(f"{path}?timestamp={moment}").json() == given
    later = client.get(f"{path}?timestamp={moment + 1}").json()
    assert given["revocationList"] == [0, 1, 0, 0]
    assert later["revocationList"] == [0, 1, 1, 0]
    assert later["timestamp"] == moment + 1


def test_a_list_that_a_proof_names_is_never_replaced(faber, alice, three, clock):
    """The proof stays valid, although another is revoked in the same second."""
    _, second, third = three
    revoke(faber, second)
    moment = int(clock.now)
    asked = faber.asks(alice, **at_moment(moment))
    alice.auto_selects()
    [named] = StatusList.objects.filter(timestamp=moment)
    assert named.is_final
    revoke(faber, third)
    assert StatusList.objects.get(pk=named.pk).body == named.body
    assert StatusList.objects.latest("timestamp").timestamp == moment + 1
    verification = Verification.objects.get(pk=asked["verificationId"])
    assert judged_again(verification)
    assert faber.get(f"/verifications/{asked['verificationId']}")["isValid"] is True


def judged_again(verification):
    outcome = judge_presentation(
        verification.require_proof_request(),
        vault.unseal(verification, "presentation"),
        ledger_of(verification.tenant.network),
    )
    return outcome.is_valid


def test_asking_whether_one_is_revoked_does_not_make_a_list_final(faber, alice, one):
    faber.asks(alice, **NOW)
    seen = alice.newest("verifications")["verificationId"]
    alice.get(f"/verifications/{seen}/availableCredentials")
    revoke(faber, one)
    assert not StatusList.objects.filter(is_final=True).exists()


def test_a_proof_in_a_transaction_makes_its_list_final_outside_of_it(faber, badge):
    """The mark stays, whatever becomes of the transaction, and locks nothing."""
    [listed] = StatusList.objects.all()
    ledger = ledger_of(listed.network)
    later = listed.timestamp + 10
    marked = []

    @network_reads.atomic_with_reads
    def prove():
        found = ledger.final_status_list(listed.registry_id, later)
        marked.append(elsewhere(lambda: StatusList.objects.get().is_final))
        raise Unavailable("rolled_back", str(found["timestamp"]))

    with pytest.raises(Unavailable) as error:
        prove()
    assert error.value.message == str(listed.timestamp)
    assert marked == [True]
    assert StatusList.objects.get().is_final


def test_a_list_given_while_replaced_is_either(faber, three, clock, client):
    """Whichever is first: what was given is what is stored in the end."""
    path, given = path_of_list(), []
    calls = [lambda c=one: revoke(faber, c) for one in three]
    ask = f"{path}?timestamp=1099511627776"
    at_once(*calls, *[lambda: given.append(Client().get(ask).json())] * 3)
    for one in given:
        stored = client.get(f"{path}?timestamp={one['timestamp']}").json()
        assert stored == one
    assert newest_list() == [0, 1, 1, 1]


LONG_STEPS = (
    "create_credential", "process_credential", "update_status_list", "second_after"
)  # fmt: skip


@pytest.fixture
def steps_with_free_registry(monkeypatch):
    """The steps that take long, and whether others could lock the registry then."""
    found = []

    def could_be_locked():
        with transactions.atomic():
            rows = RevocationRegistry.objects.select_for_update(nowait=True)
            try:
                return bool(rows.get())
            except OperationalError:
                return False

    def watch(owner, name):
        step = getattr(owner, name)

        def watched(*arguments):
            found.append((name, elsewhere(could_be_locked)))
            return step(*arguments)

        monkeypatch.setattr(owner, name, watched)

    for name in LONG_STEPS[:3]:
        watch(anoncreds, name)
    watch(revocation, LONG_STEPS[3])
    return found


def test_no_registry_is_locked_while_a_credential_is_signed_or_a_list_is_made(
    faber, badge, alice, clock, steps_with_free_registry
):
    """Others reserve slots of it meanwhile, and no feed of events waits."""
    for credential in issue(faber, alice, badge, 2):
        revoke(faber, credential)
        StatusList.objects.update(is_final=True)  # so the next one waits
    assert {name for name, _ in steps_with_free_registry} == set(LONG_STEPS)
    assert all(is_free for _, is_free in steps_with_free_registry)


@pytest.mark.parametrize("is_given", [False, True], ids=["replaced", "followed"])
def test_a_list_that_another_one_precedes_is_made_again(
    faber, three, clock, monkeypatch, is_given
):
    first, second, third = three
    revoke(faber, first)
    StatusList.objects.update(is_final=is_given)
    make, made = anoncreds.update_status_list, []

    def make_slowly(*arguments):
        made.append(arguments)
        if len(made) == 1:
            elsewhere(lambda: revoke(faber, third))
        return make(*arguments)

    monkeypatch.setattr(anoncreds, "update_status_list", make_slowly)
    revoke(faber, second)
    assert newest_list() == [0, 1, 1, 1]


def test_three_registries_of_eight_threads_lose_and_repeat_no_place(faber, badge):
    holders = [faber.hosts(f"Holder {number}") for number in range(8)]
    for holder in holders:
        holder.known_as(faber)
    receive = [lambda one=one: one.receives(faber, badge, VALUES) for one in holders]
    answers = at_once(*receive)
    assert [answer for answer in answers if isinstance(answer, Exception)] == []
    issued = Credential.objects.filter(role="issuer", state="Issued")
    places = set(issued.values_list("revocation_registry_id", "revocation_index"))
    assert len(places) == 8
    assert RevocationRegistry.objects.count() >= 3


def test_a_place_is_given_once_and_the_next_registry_is_built_in_time(badge, small):
    small.REVOCATION_REGISTRY_SIZE = 6
    [row] = CredentialDefinition.objects.select_related("tenant__network")
    registries = RevocationRegistry.objects.order_by("pk")
    build_registries()
    assert registries.count() == 1
    assert [allocate_slot(row).index for _ in range(3)] == [1, 2, 3]
    build_registries()
    build_registries()
    assert list(registries.values_list("size", flat=True)) == [4, 6]


def test_a_place_is_burnt_when_the_issue_fails(faber, badge, alice, monkeypatch):
    offered = faber.offers(alice, badge, VALUES)
    alice.accepts_offer()
    path = f"/credentials/{offered['credentialId']}"
    with monkeypatch.context() as broken:
        broken.setattr(messages, "build_issue", lambda *args: 1 / 0)
        assert faber.send("put", path).status_code == 500
    assert faber.get(path)["state"] == "Requested"
    faber.put(path)
    assert Credential.objects.get(role="issuer").revocation_index == 2


def test_lists_are_read_once_for_all_credentials_of_a_registry(
    faber, badge, alice, one
):
    def lists_read():
        faber.asks(alice, **POLICY)
        seen = alice.newest("verifications")["verificationId"]
        with CaptureQueriesContext(connection) as captured:
            alice.get(f"/verifications/{seen}/availableCredentials")
        return sum("credentials_statuslist" in query["sql"] for query in captured)

    assert lists_read() == 1
    alice.receives(faber, badge, VALUES)
    assert lists_read() == 1


def test_registry_list_and_tails_are_public_and_immutable(faber, badge, client):
    [registry] = RevocationRegistry.objects.all()
    path = f"/ledger/local/revocation-registries/{registry.registry_id}"
    public = client.get(path).json()
    assert public["value"]["maxCredNum"] == 4
    assert client.get(f"{path}/status-list").json()["revocationList"] == [0, 0, 0, 0]
    assert client.get(f"{path}/status-list?timestamp=5").status_code == 404
    assert client.get(f"{path}/status-list?timestamp=x").status_code == 400
    tails = client.get(
        public["value"]["tailsLocation"].removeprefix(product.PUBLIC_URL)
    )
    assert "immutable" in tails["Cache-Control"]
    assert len(b"".join(tails.streaming_content)) == (2 * 4 + 1) * 128 + 2
    assert client.get("/tails/" + "x" * 44).status_code == 404
    assert client.get("/tails/..%2f..%2fsettings").status_code == 404


def notice_of(held):
    """The notice that a held credential is revoked."""
    return messages.build_revocation(
        held.revocation_registry_id, held.revocation_index, held.message_format
    )


def test_a_false_notice_of_revocation_changes_nothing(alice, one):
    held = Credential.objects.select_related("connection").get(role="holder")
    with transactions.atomic():
        held.lock()
        handlers.receive_revocation(held.connection, message.read(notice_of(held)))
    assert alice.newest("credentials")["state"] == "Issued"


def test_a_notice_from_elsewhere_locks_both_in_order(faber, alice, one, phone):
    """Whoever has the first connection may lock the second one too."""
    found = []
    held = Credential.objects.select_related("connection").get(role="holder")
    accepts_invitation_of(phone, alice)
    second = Connection.objects.get(their_key=phone.verkey)
    revoke(faber, one)
    Credential.objects.filter(pk=held.pk).update(state="Issued")
    while_locked(
        held.lock,
        lambda: phone.says(notice_of(held)),
        lambda: found.append(is_free(second.pk)),
    )
    assert found == [True], "it waits for the first one without the second"
    assert alice.newest("credentials")["state"] == "Revoked"


def test_a_revocation_left_behind_is_published_later(faber, alice, one, monkeypatch):
    path = f"/credentials/{one['credentialId']}"
    with monkeypatch.context() as killed:
        killed.setattr("credentials.revocation.publish_list", lambda registry: 1 / 0)
        assert faber.send("delete", path).status_code == 500
    assert faber.get(path)["state"] == "Revoked"
    assert alice.newest("credentials")["state"] == "Issued"
    monkeypatch.setattr("credentials.tasks.LEFT_BEHIND", timedelta(0))
    finish_what_was_left_behind()
    assert alice.newest("credentials")["state"] == "Revoked"
    assert verdict(faber, alice) is False


def test_a_revocation_during_a_deletion_is_published(one, monkeypatch):
    """A list is made from the rows: without this one nobody would learn of it."""
    row = Credential.objects.get(role="issuer")
    publish = removal.publish_before_deletion

    def revoke_after_publishing(rows):
        listed = publish(rows)
        elsewhere(lambda: mark_revoked(Credential.objects.filter(pk=row.pk)))
        return listed

    monkeypatch.setattr(removal, "publish_before_deletion", revoke_after_publishing)
    removal.remove_credential(row)
    assert not Credential.objects.filter(role="issuer").exists()
    assert newest_list() == [0, 1, 0, 0]
    removal.remove_credential(row)  # what was deleted meanwhile is not deleted again


def test_what_is_not_published_does_not_block_others(three, monkeypatch):
    rows = Credential.objects.filter(role="issuer")
    rows.update(state="Revoked", updated_at=timezone.now() - timedelta(hours=1))
    tried = []

    def publish(credential):
        tried.append(credential.pk)
        errors = Unavailable("ledger_unavailable", ""), ValueError("bug")
        raise errors[len(tried) % 2]

    monkeypatch.setattr("credentials.tasks.publish_and_notify", publish)
    monkeypatch.setattr("credentials.tasks.AT_ONCE", 2)
    finish_what_was_left_behind()
    finish_what_was_left_behind()
    assert sorted(tried) == sorted(rows.values_list("pk", flat=True))
