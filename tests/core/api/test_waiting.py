"""`Prefer: wait=N`: a read answers when the other side has done its part."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import BoundedSemaphore, Event, Semaphore

import pytest
import requests
from django.conf import settings
from django.db import connection
from django.test import Client

from core.api import long_poll
from core.work import waiting
from tests.support.event_streams import serving
from tests.support.processes import free_port
from tests.support.races import in_thread, wait_until

pytestmark = pytest.mark.django_db(transaction=True)
PATIENCE = 20  # seconds for a thread


@pytest.fixture
def clock(monkeypatch):
    """Let time pass only in sleep.

    Return the pauses, and check that no lock is held meanwhile.
    """
    now, pauses = [0.0], []

    def sleep(seconds):
        assert connection.connection is None, "a sleeper holds a database connection"
        pauses.append(seconds)
        now[0] += seconds

    monkeypatch.setattr(long_poll, "sleep", sleep)
    monkeypatch.setattr(long_poll, "monotonic", lambda: now[0])
    return pauses


def waits(caller, path, prefer="wait=10"):
    return caller.send("get", path, Prefer=prefer)


class Sleep:
    """Readers sleep until the test lets them go on."""

    def __init__(self):
        self.begun, self.over = Semaphore(0), Event()

    def __call__(self, seconds):
        self.begun.release()
        assert self.over.wait(PATIENCE)

    def begins(self):
        return self.begun.acquire(timeout=PATIENCE)


@pytest.fixture
def sleep(monkeypatch):
    monkeypatch.setattr(long_poll, "sleep", sleep := Sleep())
    return sleep


def meanwhile(sleep, read, act):
    """What `read` answered, which was begun before `act`."""
    sleep.over.clear()
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(in_thread, read)
        assert sleep.begins(), "it did not wait"
        act()
        sleep.over.set()
        return reading.result()


def connection_of_the_organization(world):
    invited = world.faber.invites()
    accept = partial(world.alice.accepts_invitation, invited["invitation"])
    return world.faber, f"/connections/{invited['connectionId']}", accept, "Connected"


def credential_of_the_organization(world):
    offered, held = world.offered(automaticIssuance=True)
    accept = partial(world.alice.post, f"/credentials/{held}")
    return world.faber, f"/credentials/{offered}", accept, "Issued"


def credential_of_the_wallet(world):
    accepted, held = world.accepted()
    issue = partial(world.faber.put, f"/credentials/{accepted}")
    return world.alice, f"/credentials/{held}", issue, "Issued"


def credential_that_was_proposed(world):
    theirs, mine = world.wished()
    offer = partial(world.faber.put, f"/credentials/{theirs}/offer")
    return world.alice, f"/credentials/{mine}", offer, "Offered"


def verification_of_the_organization(world):
    asked, mine = world.asked()
    decline = partial(world.alice.put, f"/verifications/{mine}/decline")
    return world.faber, f"/verifications/{asked}", decline, "Rejected"


def verification_of_the_wallet(world):
    theirs, mine = world.proposed()
    path = f"/verifications/proposal/{theirs}/connections/{world.connection[0]}"
    ask = partial(world.faber.put, path)
    return world.alice, f"/verifications/{mine}", ask, "Requested"


WALKS = (
    connection_of_the_organization, credential_of_the_organization,
    credential_of_the_wallet, credential_that_was_proposed,
    verification_of_the_organization, verification_of_the_wallet,
)  # fmt: skip


def test_a_read_wakes_when_the_other_side_has_acted(world, sleep, subtests):
    for walk in WALKS:
        with subtests.test(walk.__name__):
            caller, path, act, state = walk(world)
            answer = meanwhile(sleep, partial(waits, caller, path), act)
            assert answer.json()["state"] == state
            assert answer["Preference-Applied"] == "wait=10"


def test_what_awaits_nothing_of_the_other_side_is_answered_at_once(world, clock):
    faber, alice = world.faber, world.alice
    multi = faber.invites(multiParty=True)["connectionId"]
    offered, held = world.offered()
    requested, _ = world.accepted()
    for caller, path in (
        (faber, f"/connections/{world.connection[0]}"),
        (alice, f"/connections/{world.connection[1]}"),
        (faber, f"/connections/{multi}"),
        (alice, f"/credentials/{held}"),
        (faber, f"/credentials/{requested}"),
        (faber, f"/credentials/{world.credential[0]}"),
        (faber, f"/verifications/{world.verification[0]}"),
        (alice, f"/verifications/{world.verification[1]}"),
        (alice, f"/verifications/{world.asked()[1]}"),
        (faber, f"/verifications/{world.proposed()[0]}"),
        (faber, f"/credentials/{world.wished()[0]}"),
    ):
        answer = waits(caller, path, "wait=5")
        assert (answer["Preference-Applied"], clock) == ("wait=5", []), path
        assert answer.status_code == 200, path


def test_without_the_preference_a_read_does_not_wait(faber, clock):
    path = f"/connections/{faber.invites()['connectionId']}"
    assert "Preference-Applied" not in faber.send("get", path)
    assert "Preference-Applied" not in waits(faber, path, "respond-async, wait=soon")
    assert waits(faber, path, "wait=0")["Preference-Applied"] == "wait=0"
    assert clock == []


@pytest.mark.parametrize(("prefer", "seconds"), [("wait=2", 2), ("wait=99999", 10)])
def test_it_waits_as_long_as_asked_at_most_ten_seconds_and_rests_in_between(
    faber, clock, prefer, seconds
):
    answer = waits(faber, f"/connections/{faber.invites()['connectionId']}", prefer)
    assert answer.json()["state"] == "Invited"
    assert answer["Preference-Applied"] == f"wait={seconds}"
    assert sum(clock) == pytest.approx(seconds)
    assert clock[0] == 0.05 and max(clock) <= 0.5 and len(clock) < 5 + 3 * seconds


PREFERENCES = {
    "wait=3": 3, "Wait = 3": 3, 'respond-async, wait="3"; strict, wait=4': 3,
    "wait=10": 10, "wait=11": 10, "wait=0": 0,
}  # fmt: skip
NONE = ("", "wait", "wait=-1", "wait=1.5", "wait=" + "9" * 400, "await=3", "x; wait=3")


def test_the_preference_is_read_as_rfc_7240_says():
    for header, seconds in (PREFERENCES | dict.fromkeys(NONE)).items():
        assert long_poll.requested_seconds(header) == seconds, header


def test_beyond_the_cap_a_read_is_answered_at_once_and_the_cap_is_given_back(
    faber, sleep, monkeypatch
):
    monkeypatch.setattr(waiting, "peer_slots", BoundedSemaphore(2))
    invited, alice = faber.invites(), faber.hosts()
    read = partial(waits, faber, f"/connections/{invited['connectionId']}", "wait=2")
    with ThreadPoolExecutor(2) as pool:
        two = [pool.submit(in_thread, read) for _ in range(2)]
        assert sleep.begins() and sleep.begins()
        third = read()
        assert Client().get("/health").content == b"Healthy"
        assert third.status_code == 200 and "Preference-Applied" not in third
        alice.accepts_invitation(invited["invitation"])
        sleep.over.set()
        assert {one.result()["Preference-Applied"] for one in two} == {"wait=2"}
    assert [waiting.peer_slots.acquire(blocking=False) for _ in "12"] == [True, True]


def test_what_is_deleted_meanwhile_is_404_and_its_place_is_given_back(
    faber, sleep, monkeypatch
):
    monkeypatch.setattr(waiting, "peer_slots", BoundedSemaphore(1))
    path = f"/connections/{faber.invites()['connectionId']}"
    read, delete = partial(waits, faber, path), partial(faber.delete, path)
    answer = meanwhile(sleep, read, delete)
    assert answer.status_code == 404
    assert waiting.peer_slots.acquire(blocking=False)


def test_the_cap_is_half_of_the_threads_that_the_web_server_is_given():
    assert waiting.peer_slots._initial_value == settings.WEB_THREADS // 2


@pytest.fixture
def server(faber):
    """The web process itself, on the test's database."""
    with serving("web", free_port()) as url:
        yield url


@pytest.mark.slow
def test_many_waits_do_not_starve_the_web_server(faber, server):
    url = f"{server}/connections/{faber.invites()['connectionId']}"
    headers = faber.headers | {"Prefer": "wait=3"}
    with ThreadPoolExecutor(8) as pool:
        reads = [
            pool.submit(requests.get, url, headers=headers, timeout=10)
            for _ in range(8)
        ]
        answered = lambda: sum(read.done() for read in reads)  # noqa: E731
        wait_until(lambda: answered() == 8 - settings.WEB_THREADS // 2)
        assert requests.get(f"{server}/health", timeout=10).text == "Healthy"
        assert answered() == 8 - settings.WEB_THREADS // 2, "the others wait still"
        answers = [read.result() for read in reads]
    assert {answer.status_code for answer in answers} == {200}
    applied = [answer.headers.get("Preference-Applied") for answer in answers]
    assert applied.count("wait=3") == settings.WEB_THREADS // 2
