"""Old status lists are stored as what differs from the first one of their month.

Whoever reads one, at any time, gets the same bytes as before.
"""

import json
import random
from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from agency.ops.moving.tables import WHOLE_LIST
from credentials import retention
from credentials.ledgers.published import FAR_FUTURE, month_start
from credentials.models import StatusList
from tenants.lifecycle.provisioning import LOCAL, require_network
from tests.factories import NetworkFactory, StatusListFactory
from tests.support.aging import age
from tests.support.races import at_once

pytestmark = pytest.mark.django_db(transaction=True)
JANUARY = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
DAY = 86_400
DID = "V4SGRU86Z58d6TV7PBUe6f"


@pytest.fixture
def local(transactional_db):
    return require_network(LOCAL)


def accumulator(number):
    """As long as a real one, and another one for each list."""
    words = random.Random(number)
    return "".join(
        f"{index} {words.randbytes(32).hex().upper()} " for index in range(6)
    )


def body(name, moment, places):
    return {
        "revRegDefId": name,
        "issuerId": DID,
        "revocationList": [*places],
        "currentAccumulator": accumulator(moment),
        "timestamp": moment,
    }


def publishes(network, tag, *lists):
    """lists: moments with their places. Return the id of the registry."""
    name = f"{DID}:4:{DID}:3:CL:7:badge:CL_ACCUM:{tag}"
    StatusList.objects.bulk_create(
        StatusList(
            network=network,
            registry_id=name,
            timestamp=moment,
            body=body(name, moment, places),
        )
        for moment, places in lists
    )
    return name


def lists_of(size, lists, seed=1):
    """One each nine days. Each revokes one; some are revoked no more."""
    choice, places, found = random.Random(seed), [0] * size, []
    for number in range(lists):
        found.append((JANUARY + number * 9 * DAY + number, [*places]))
        places[choice.randrange(size)] ^= 1
    return found


def is_old():
    age(StatusList.objects.all(), 30)


def read_all(network, name):
    """What readers get at the time of each list, and just before it, as bytes."""
    times = StatusList.objects.filter(registry_id=name).values_list(
        "timestamp", flat=True
    )
    asked = sorted({moment + step for moment in times for step in (-1, 0)})
    found = [StatusList.newest(network, name, moment) for moment in asked]
    return [json.dumps(one) for one in [*found, StatusList.newest(network, name)]]


def exported():
    """Each list as the export of its organization writes it."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT id::text, ({WHOLE_LIST})::text FROM credentials_statuslist"
        )
        return dict(cursor.fetchall())


def stored():
    """For each list in their order: f as a full one, d as a difference, - as before."""
    rows = StatusList.objects.order_by("registry_id", "timestamp")
    return "".join(
        "d" if row.changed else "-" if row.full_at is None else "f" for row in rows
    )


def test_the_first_list_of_a_month_and_the_newest_one_are_whole(local):
    moments = [JANUARY + day * DAY for day in (3, 4, 20, 31, 40, 41)]
    for tag in "ab":
        publishes(local, tag, *[(one, [0, 1, 0]) for one in moments])
    is_old()
    assert retention.fold_lists() == 10
    assert stored() == "fddfd-" * 2
    assert retention.fold_lists() == 0, "they are not looked at again"
    publishes(local, "a", (JANUARY + 50 * DAY, [1, 1, 1]))
    assert retention.fold_lists() == 1, "the newest of before"
    assert stored() == "fddfdd-" + "fddfd-"


def test_every_list_is_served_with_the_same_bytes(local):
    names = [publishes(local, f"{size}", *lists_of(size, 10)) for size in (2, 1000)]

    def served():
        return [
            Client()
            .get(
                f"/ledger/{LOCAL}/revocation-registries/{name}/status-list",
                {"timestamp": moment + later},
            )
            .content
            for name in names
            for moment, _ in lists_of(2, 10)
            for later in (0, DAY)
        ]

    is_old()
    before = served(), exported()
    assert retention.fold_lists() == 2 * 9
    assert stored().count("d") > 2 * 5
    assert (served(), exported()) == before


@st.composite
def histories(draw):
    """Lists of a registry: when, and what is revoked then and perhaps no more later."""
    size = draw(st.integers(1, 16))
    moments = draw(st.sets(st.integers(0, 100 * DAY), min_size=1, max_size=6))
    bits = st.lists(st.integers(0, 1), min_size=size, max_size=size)
    return [(JANUARY + moment, draw(bits)) for moment in sorted(moments)]


def test_any_history_reads_as_it_was_published(local):
    """Also if the list of a second is replaced, before anybody relied on it."""

    @settings(max_examples=15, deadline=None)
    @given(st.lists(histories(), min_size=1, max_size=2), st.data())
    def check(several, data):
        StatusList.objects.all().delete()
        names = []
        for number, lists in enumerate(several):
            name = publishes(local, f"{number}", *lists)
            moment, places = data.draw(st.sampled_from(lists))
            flipped = [1 - bit for bit in places]
            assert StatusList.replace(local, body(name, moment, flipped))
            names.append(name)
        before = [read_all(local, name) for name in names]
        is_old()
        whole = exported()
        retention.fold_lists()
        assert [read_all(local, name) for name in names] == before
        assert exported() == whole
        for number, lists in enumerate(several):
            months = {month_start(moment) for moment, _ in lists}
            row = StatusList.objects.filter(registry_id=names[number])
            assert row.filter(changed=None).count() <= len(months) + 1

    check()


@pytest.mark.parametrize(
    "size, whole, folded", [(1000, 1100, 900), (40_960, 12_000, 1500)]
)
def test_a_difference_takes_less_than_a_whole_list(local, size, whole, folded):
    """Bytes of a row as PostgreSQL stores it, compressed, with 2 % revoked."""
    choice, places, lists = random.Random(7), [0] * size, []
    for number in range(11):
        lists.append((JANUARY + number, [*places]))
        for _ in range(size // 500):
            places[choice.randrange(size)] = 1
    publishes(local, "a", *lists)
    is_old()

    def bytes_of():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT sum(pg_column_size(list.*)) / 9 FROM ("
                "SELECT * FROM credentials_statuslist ORDER BY timestamp "
                "OFFSET 1 LIMIT 9) AS list"
            )
            return int(cursor.fetchone()[0])

    before = bytes_of()
    retention.fold_lists()
    assert stored() == "f" + 9 * "d" + "-"
    assert before > whole and bytes_of() < folded


def test_a_young_list_and_copies_of_indy_stay_as_they_are(local):
    publishes(local, "young", *lists_of(3, 3))
    retention.fold_lists()
    assert stored() == "---"
    publishes(NetworkFactory(), "copied", *lists_of(3, 3))
    is_old()
    retention.fold_lists()
    copies = StatusList.objects.exclude(network=local)
    assert not copies.exclude(full_at=None).exists()


def test_what_is_killed_in_the_middle_goes_on(local, monkeypatch):
    name = publishes(local, "a", *lists_of(5, 3))
    is_old()
    before = read_all(local, name)
    change, calls = StatusList._change_unfolded, []

    def dies(row, **changes):
        calls.append(row)
        return change(row, **changes) if len(calls) < 2 else 1 / 0

    with monkeypatch.context() as broken, pytest.raises(ZeroDivisionError):
        broken.setattr(StatusList, "_change_unfolded", dies)
        retention.fold_lists()
    assert stored() == "f--"
    assert read_all(local, name) == before
    retention.fold_lists()
    assert stored() == "fd-"
    assert read_all(local, name) == before


def test_two_workers_fold_the_same_lists(local):
    names = [publishes(local, tag, *lists_of(8, 6)) for tag in "abc"]
    is_old()
    before = [read_all(local, name) for name in names]
    assert all(isinstance(one, int) for one in at_once(*[retention.fold_lists] * 3))
    assert [read_all(local, name) for name in names] == before
    assert "d" in stored() and stored().count("-") == 3


def test_a_list_that_was_replaced_meanwhile_is_not_folded(local):
    name = publishes(local, "a", (JANUARY, [0, 0]), (JANUARY + 5, [0, 1]))
    row = StatusList.objects.get(timestamp=JANUARY + 5)
    assert StatusList.replace(local, body(name, row.timestamp, [1, 1]))
    row.fold()
    assert stored() == "f-"
    assert StatusList.newest(local, name)["revocationList"] == [1, 1]


@pytest.mark.parametrize(
    "change",
    [
        {"revocationList": [0]},
        {"revocationList": [0, 7]},
        {"revocationList": ["0", "1"]},
        {"revocationList": [0, True]},
        {"revocationList": None},
        {"currentAccumulator": 5},
        {"timestamp": "now"},
        {"one": "more"},
    ],
)
def test_a_list_that_no_difference_makes_stays_whole(local, change):
    name = publishes(local, "a", *[(JANUARY + one, [0, 0]) for one in range(4)])
    odd = StatusList.objects.get(timestamp=JANUARY + 1)
    StatusList.objects.filter(pk=odd.pk).update(body=odd.body | change)
    is_old()
    before = read_all(local, name)
    retention.fold_lists()
    assert stored() == "ffd-"
    assert read_all(local, name) == before


@pytest.mark.parametrize("number", ["1" * 5000, "[" * 3000 + "]" * 3000])
def test_what_nobody_can_read_stops_no_other_list(local, number):
    publishes(local, "a", *[(JANUARY + one, [0, 0]) for one in range(4)])
    is_old()
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE credentials_statuslist SET body = jsonb_build_object('a', %s::jsonb) "
            "WHERE timestamp = %s",
            [number, JANUARY + 1],
        )
    retention.fold_lists()
    rows = StatusList.objects.defer("body").order_by("timestamp")
    assert [row.full_at for row in rows] == [JANUARY, JANUARY + 1, JANUARY, None]


def test_times_that_are_no_dates_are_months_of_their_own(local):
    name = publishes(local, "a", (FAR_FUTURE, [0]), (FAR_FUTURE + 1, [1]), (2**62, [1]))
    is_old()
    retention.fold_lists()
    assert stored() == "ff-"
    assert StatusList.newest(local, name, FAR_FUTURE)["revocationList"] == [0]


@pytest.mark.parametrize(
    "changes",
    [
        {"changed": b"\1"},
        {"changed": b"\1", "full_at": JANUARY},
        {"full_at": JANUARY - 1},
    ],
)
def test_a_row_is_a_whole_list_or_a_difference_to_an_earlier_one(local, changes):
    row = StatusListFactory(network=local, timestamp=JANUARY)
    with pytest.raises(IntegrityError), transaction.atomic():
        StatusList.objects.filter(pk=row.pk).update(**changes)


def test_a_list_is_marked_as_given_while_it_is_folded(local):
    publishes(local, "a", *[(JANUARY + one, [0, one % 2]) for one in range(3)])
    is_old()
    read = StatusList.objects.get(timestamp=JANUARY + 1)
    retention.fold_lists()
    assert read.body, "read before it was folded"
    assert read.final_body()["revocationList"] == [0, 1]
    assert StatusList.objects.get(pk=read.pk).is_final


def test_a_month_begins_at_midnight_in_utc():
    assert month_start(JANUARY) == month_start(JANUARY + 31 * DAY - 1) == JANUARY
    assert month_start(JANUARY + 31 * DAY) == JANUARY + 31 * DAY


def test_a_list_is_old_after_a_week(local):
    publishes(local, "a", *lists_of(2, 3))
    age(StatusList.objects.all(), 6)
    assert retention.fold_lists() == 0
    age(StatusList.objects.all(), 8)
    assert retention.fold_lists() == 2
