"""Copies of an Indy ledger's revocation lists go; those of the local network stay."""

import pytest

from credentials import retention
from credentials.ledgers.webvh.resources import SCHEMA, STATUS_LIST, Resource
from credentials.models import ReadResource, StatusList
from tests.factories import NetworkFactory, StatusListFactory
from tests.support.aging import age

pytestmark = pytest.mark.django_db


@pytest.fixture
def far():
    return NetworkFactory()


def publishes(network, registry, *times):
    named = {"network": network, "registry_id": registry}
    for time in times:
        StatusListFactory(**named, timestamp=time, body={"at": time})


def times_of(registry):
    lists = StatusList.objects.filter(registry_id=registry)
    return sorted(lists.values_list("timestamp", flat=True))


def test_of_old_copies_the_newest_of_each_registry_stays_and_a_new_one(far):
    publishes(far, "one", 1, 2, 3)
    publishes(far, "other", 4)
    age(StatusList.objects.all(), 2)
    assert retention.delete_copied_lists() == 2
    assert (times_of("one"), times_of("other")) == ([3], [4])
    publishes(far, "one", 5, 6)
    assert retention.delete_copied_lists() == 1
    assert times_of("one") == [5, 6], "nodes may lag behind"


def test_each_list_of_the_local_network_answers_for_its_time_for_ever(far):
    local = NetworkFactory(local=True)
    publishes(local, "one", 1, 2, 3)
    age(StatusList.objects.all(), 4000)
    assert retention.delete_copied_lists() == 0
    found = [StatusList.newest(local, "one", time)["at"] for time in (1, 2, 9)]
    assert found == [1, 2, 3]


def test_what_was_read_of_others_is_read_again_some_day():
    for name, kind in (("schema", SCHEMA), ("list", STATUS_LIST)):
        ReadResource.remember(name, kind, Resource({}, []))
    assert retention.delete_read_resources() == 0
    age(ReadResource.objects.all(), 2)
    assert retention.delete_read_resources() == 1
    assert ReadResource.objects.get().resource_id == "schema"
    age(ReadResource.objects.all(), 31)
    assert retention.delete_read_resources() == 1
