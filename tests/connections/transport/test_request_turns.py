"""Requests to connect of other agents: one at a time for an organization, in turn."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from uuid_utils.compat import uuid7

from connections import tasks
from connections.models import InboundMessage
from connections.transport import inbox
from connections.transport.request_turns import Turns
from tests.factories import InboundMessageFactory, TenantFactory
from tests.support.races import PATIENCE, in_thread

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def turns(monkeypatch):
    """Of a worker that has just started."""
    new = Turns()
    monkeypatch.setattr(tasks, "turns", new)
    return new


@pytest.fixture
def handled(monkeypatch):
    """The names of the organizations whose messages are handled, letter by letter."""
    names = []

    def handle(row):
        names.append(row.tenant.name)
        row.finish()

    monkeypatch.setattr(inbox, "process", handle)
    return names


def arrives(tenant, number=1, **fields):
    """So many requests to connect, or messages if `origin` is None."""
    fields = {"origin": uuid7()} | fields
    InboundMessageFactory.create_batch(number, tenant=tenant, **fields)


def organizations(names):
    """In the order of their primary keys."""
    return [TenantFactory(name=name) for name in names]


def test_organizations_take_turns_however_many_ask(turns, handled):
    a, b, c = organizations("ABC")
    arrives(a, 4)
    arrives(b)
    arrives(c, 2)
    while turns.handle_next():
        pass
    assert "".join(handled) == "ABCACAA"


def test_rows_that_another_process_leases_meanwhile_hold_up_nobody(
    turns, handled, monkeypatch
):
    a, b = organizations("AB")
    arrives(a)
    arrives(b)
    claim, taken = InboundMessage.claim_in_turn, []

    def claim_after_others(*given):
        if not taken:
            taken.append(InboundMessage.claim(1, tenant=a))
        return claim(*given)

    monkeypatch.setattr(InboundMessage, "claim_in_turn", claim_after_others)
    assert turns.handle_next() and handled == ["B"]


def test_places_take_turns_for_the_requests_of_an_organization(turns, monkeypatch):
    [a] = organizations("A")
    many, few = sorted(uuid7() for _ in range(2))
    arrives(a, 3, origin=many)
    arrives(a, 1, origin=few)
    places = []

    def handle(row):
        places.append(row.origin)
        row.finish(origin=None)

    monkeypatch.setattr(inbox, "process", handle)
    while turns.handle_next():
        pass
    assert places == [many, few, many, many]


def test_two_organizations_at_most_are_handled_at_once(turns, handled):
    """However many threads are free: their requests may wait for other hosts."""
    a, b, c = organizations("ABC")
    arrives(c)
    turns.busy |= {a.pk, b.pk}
    assert not turns.handle_next()
    turns.busy.discard(b.pk)
    assert turns.handle_next() and handled == ["C"]


def test_other_messages_pass_requests(turns, handled):
    a, b = organizations("AB")
    arrives(a, 3)
    arrives(b, origin=None)
    tasks.sweep()
    assert "".join(handled) == "BAAA"


def test_one_request_of_an_organization_is_handled_at_a_time(turns, monkeypatch):
    """By the thread that is at it, which finds those that came meanwhile."""
    a, b = organizations("AB")
    began, goes_on, handled = Event(), Event(), []

    def handle(row):
        handled.append(row.tenant.name)
        if len(handled) == 1:
            began.set()
            assert goes_on.wait(PATIENCE)
        row.finish()

    monkeypatch.setattr(inbox, "process", handle)
    arrives(a, 2)
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(in_thread, tasks.sweep)
        try:
            assert began.wait(PATIENCE)
            arrives(a)
            arrives(b, 2)
            tasks.sweep()
            assert "".join(handled) == "ABB"
        finally:
            goes_on.set()
        first.result()
    assert "".join(handled) == "ABBAA"


def test_a_worker_that_failed_leaves_the_turn_to_others(turns, handled, monkeypatch):
    [a] = organizations("A")
    arrives(a, 2)

    def fail(row):
        raise ConnectionError

    with monkeypatch.context() as broken, pytest.raises(ConnectionError):
        broken.setattr(inbox, "process", fail)
        turns.handle_next()
    assert turns.handle_next()
    assert InboundMessage.due().count() == 0  # that one is still leased
