"""Who gets the next spare key: each organization in turn."""

from datetime import timedelta
from threading import BoundedSemaphore
from uuid import UUID

import pytest

from core.call import this_call
from core.database import clock
from tests.support.races import at_once, during
from wallets import key_queue
from wallets.key_queue import KeyNotReady, join_queue, lease_key, take_turn
from wallets.models import KeyRequest, SpareKey

pytestmark = pytest.mark.django_db(transaction=True)
A, B, C = (UUID(int=number) for number in (1, 2, 3))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(key_queue, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(key_queue, "MAX_WAITING", 4)


@pytest.fixture
def called(monkeypatch):
    """The tasks that workers were told of."""
    called = []
    monkeypatch.setattr(key_queue, "notify_worker", called.append)
    return called


def make_keys(count=1):
    for _ in range(count):
        SpareKey.objects.create(attributes=1, parts=b"")


def give_next(requests):
    """Make a key, and return the organization that takes it."""
    make_keys()
    taken = [one for one in requests if isinstance(key_queue.take_turn(one), SpareKey)]
    [request] = taken
    requests.remove(request)
    return request.organization


def refused(organization, **given):
    with pytest.raises(KeyNotReady) as found:
        lease_key(organization, **given)
    return found.value.retry_after


def test_nobody_gets_a_second_key_while_another_waits_for_the_first():
    requests = [join_queue(one) for one in (A, A, A, B, B, C)]
    assert [give_next(requests) for _ in range(3)] == [A, B, C]
    requests.append(join_queue(C))
    assert [give_next(requests) for _ in range(4)] == [A, B, C, A]


def test_who_got_a_key_without_waiting_has_had_one():
    make_keys()
    assert lease_key(A)
    requests = [join_queue(one) for one in (A, B)]
    assert give_next(requests) == B


def test_as_many_take_their_turn_as_there_are_keys():
    requests = [join_queue(one) for one in (A, B, C)]
    make_keys(2)
    assert take_turn(requests[2]) == 3
    assert {take_turn(one).pk for one in requests[:2]} == set(
        SpareKey.objects.values_list("pk", flat=True)
    )
    assert take_turn(requests[2]) == 1


def test_a_key_is_leased_to_one_of_those_who_take_it_at_once():
    make_keys()
    found = at_once(*[lambda: lease_key(A, seconds=0) for _ in range(3)])
    kinds = sorted(type(one).__name__ for one in found)
    assert kinds == ["KeyNotReady", "KeyNotReady", "SpareKey"]


def test_a_key_that_a_process_of_0_1_0_takes_meanwhile_is_not_leased():
    make_keys()
    request = join_queue(A)

    def take_as_0_1_0():
        return SpareKey.objects.select_for_update(skip_locked=True).get().delete()

    # Nor does the queue stand still until that process has stored it.
    assert during(take_as_0_1_0, lambda: take_turn(request))[1] == 1
    assert not SpareKey.objects.exists()
    make_keys()
    assert isinstance(take_turn(request), SpareKey)


def test_three_calls_of_an_organization_wait_and_the_others_do_not_stop_anybody():
    requests = [join_queue(A) for _ in range(3)]
    assert {refused(A) for _ in range(117)} == {1}
    requests.append(join_queue(B))
    assert KeyRequest.objects.count() == 4
    assert [give_next(requests) for _ in range(3)] == [A, B, A]


def test_only_the_first_places_wait_and_a_better_one_displaces(called):
    requests = [join_queue(one) for one in (A, A, B, B)]
    assert take_turn(requests[3]) == 4
    assert refused(A) == 4  # the fifth place, at once
    assert refused(C, seconds=0) == 1  # the third place, but the time is over
    assert take_turn(requests[3]) == 5
    assert called == ["wallets.tasks.fill_key_pool"] * 2


def test_a_refused_call_is_told_when_by_its_place_and_keeps_it(monkeypatch):
    monkeypatch.setattr(key_queue, "MAX_WAITING", 1)
    requests = [join_queue(A)]
    assert [refused(B), refused(C)] == [4, 7]
    again = join_queue(B)
    assert take_turn(again) == 2
    assert KeyRequest.objects.count() == 3
    KeyRequest.objects.filter(organization=B).update(alive_until=clock.now())
    assert take_turn(join_queue(C)) == 2
    assert take_turn(requests[0]) == 1


def test_a_call_of_a_killed_process_loses_its_place(monkeypatch):
    join_queue(A)
    monkeypatch.setattr(clock, "now", later(seconds=11))
    make_keys()
    assert lease_key(B)


def later(**time):
    now = clock.now
    return lambda: now() + timedelta(**time)


def test_a_lease_that_was_left_behind_ends(monkeypatch):
    make_keys()
    first = lease_key(A)
    refused(A, seconds=0)
    monkeypatch.setattr(clock, "now", later(minutes=6))
    assert lease_key(A).pk == first.pk
    monkeypatch.setattr(clock, "now", later(hours=2))
    join_queue(B)
    assert KeyRequest.objects.count() == 1


def test_a_process_lets_so_many_threads_wait(monkeypatch, called):
    monkeypatch.setattr(key_queue, "waiting_threads", BoundedSemaphore(1))
    counted = []
    monkeypatch.setattr(this_call, "count_idle", counted.append)
    with key_queue.waiting_threads:
        assert refused(A) == 1
    assert counted == []
    refused(A, seconds=0)
    assert counted == [+1, -1]
    assert key_queue.waiting_threads.acquire(blocking=False)


def test_half_of_the_threads_may_wait_and_two_at_least(settings):
    assert max(2, settings.WEB_THREADS // 2) == key_queue.MAX_THREADS
