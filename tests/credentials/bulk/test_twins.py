"""Bulks on a network: the definition or its twin, for all rows or as each can read."""

import signal

import pytest

from connections.didcomm.message import PREFIX
from connections.protocols.discover_features import DISCLOSE
from credentials import twins
from credentials.models import Bulk, Credential
from tests.credentials.bulk.people import (
    read,
    read_result,
    send_file,
    sent,
    worker_issues,
)
from tests.support.errors import assert_error
from tests.support.killed_worker import start_worker
from tests.support.pictures import storage
from tests.support.twins import alice, badge, faber, twin

__all__ = ["alice", "badge", "faber", "storage", "twin"]  # fixtures
BOTH = [["issue-credential/1.0", "issue-credential/2.0"], ["issue-credential/1.0"]]
WORK = """
from credentials.bulk import issuing
issuing.loop.run()
"""


def rows_to(alice):
    """One to her hosted wallet, and one by a link."""
    return f"Full Name,level,walletId\nAlice,7,{alice.wallet_id}\nBob,8,\n"


def knows(phone, faber, disclosed):
    connection = phone.connects(faber).connection_id
    listed = [{"pid": PREFIX + one} for one in disclosed]
    phone.says(phone.build(DISCLOSE, None, protocols=listed))
    return connection


def offered(faber):
    return {one["definitionId"] for one in faber.get("/credentials")}


@pytest.mark.parametrize("is_twin_named", [False, True])
def test_all_rows_are_offered_on_the_network_that_the_call_names(
    faber, badge, twin, alice, is_twin_named
):
    alice.known_as(faber)
    named = twin if is_twin_named else badge
    for network, wanted in (("webvh", twin), ("local", badge)):
        bulk = sent(faber, named, rows_to(alice), network=network)
        assert bulk["network"] == network
        assert bulk["definitionId"] == wanted["definitionId"]
        worker_issues()
        assert read(faber, bulk)["counts"] == {"Offered": 2}
        assert offered(faber) == {wanted["definitionId"]}
        Credential.objects.all().delete()
    listed = faber.get("/credentials/bulk")
    assert [one["network"] for one in listed] == ["local", "webvh"]


@pytest.mark.parametrize(
    "disclosed, network",
    [(BOTH[0], ""), (BOTH[1], ""), (BOTH[0], "local"), (BOTH[1], "webvh")],
)
def test_a_phone_gets_what_it_can_read_unless_a_network_is_named(
    faber, badge, twin, alice, phone, disclosed, network
):
    """Beside it, hosted wallets and links get the definition of the call."""
    alice.known_as(faber)
    to = knows(phone, faber, disclosed)
    text = (
        f"Full Name,level,connectionId,walletId\nPhone,1,{to},\n"
        f"Alice,2,,{alice.wallet_id}\nBob,3,,\n"
    )
    bulk = sent(faber, badge, text, **({"network": network} if network else {}))
    assert ("network" in bulk) == bool(network)
    worker_issues()
    found = {
        one["values"]["level"]: one["definitionId"] for one in faber.get("/credentials")
    }
    takes_twin = len(disclosed) == 2
    usual = twin if network == "webvh" else badge
    of_phone = twin if takes_twin and not network else usual
    if network == "webvh" and not takes_twin:
        assert read(faber, bulk)["errors"][0]["code"] == "needs_version_2"
    else:
        assert found.pop("1") == of_phone["definitionId"]
    assert found == dict.fromkeys("23", usual["definitionId"])


def test_the_twin_is_read_once_a_turn_and_without_its_key(
    faber, badge, twin, phone, monkeypatch
):
    to = knows(phone, faber, BOTH[0])
    found = []

    def find(definition):
        found.append(find_twin(definition))
        return found[-1]

    find_twin = twins.find_twin
    monkeypatch.setattr(twins, "find_twin", find)
    text = f"Full Name,level,connectionId\nOne,1,{to}\nTwo,2,{to}\n"
    bulk = sent(faber, badge, text)
    worker_issues()
    assert read(faber, bulk)["counts"] == {"Offered": 2}
    assert offered(faber) == {twin["definitionId"]}
    [once] = found
    assert "private_key" in once.get_deferred_fields()


def test_without_a_twin_on_the_network_nothing_is_stored(faber, alice):
    licence = faber.defines("name")
    for options in ({}, {"dryRun": "true"}):
        for network in ("webvh", "indy"):
            refused = send_file(
                faber, licence, "name\nAl\n", network=network, **options
            )
            assert_error(refused, 409, "no_twin")
    refused = send_file(faber, licence, "name\nAl\n", network="x" * 65)
    assert_error(refused, 400, "invalid_request")
    assert not Bulk.objects.exists()
    bulk = sent(faber, licence, "name\nAl\n", network="local")
    assert bulk["network"] == "local"


def test_a_dry_run_says_what_would_be_offered(faber, badge, twin):
    found = sent(faber, badge, "Full Name,level\nAl,1\n", network="webvh", dryRun=True)
    assert found["definitionId"] == twin["definitionId"]
    assert (found["network"], found["counts"]) == ("webvh", {"Waiting": 1})


@pytest.mark.slow
def test_after_a_killed_worker_each_row_is_offered_once_by_the_twin(
    faber, badge, twin, alice
):
    alice.known_as(faber)
    bulk = sent(faber, badge, rows_to(alice), network="webvh")
    worker = start_worker(WORK, FAULT_POINT="inside_bulk_row", FAULT_INJECTION="1")
    assert worker.wait(timeout=60) == -signal.SIGKILL
    assert not Credential.objects.exists()
    worker_issues()
    assert read(faber, bulk)["counts"] == {"Offered": 2}
    assert len({line[2] for line in read_result(faber, bulk)}) == 2
    assert offered(faber) == {twin["definitionId"]}
    assert len(alice.get("/credentials")) == 1
