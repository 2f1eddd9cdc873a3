"""An event knows the API call that caused it, if that was its organization's own."""

import pytest

from core.call import this_call
from tests.support import queues
from webhooks.models import Delivery, Event

CALL = "order-4711"


@pytest.fixture
def invited(faber):
    return faber.call("post", "/connections", {}, **{"X-Request-Id": CALL})


def ids(tenant):
    rows = Event.objects.filter(tenant=tenant).order_by("pk")
    return list(rows.values_list("request_id", flat=True))


def test_the_call_that_caused_it_is_stored(faber, invited):
    [found] = ids(faber.tenant)
    assert found.startswith(f"{CALL}.")
    assert this_call.tenant_id is None
    response = faber.send("post", "/connections", {})
    assert ids(faber.tenant) == [found, response["X-Request-Id"]]


def test_the_other_organization_sees_no_id_but_its_deliveries_have_it(faber, acme):
    faber.post("/webhooks", {"url": "https://office.example"})
    invited = faber.call("post", "/connections", {}, **{"X-Request-Id": CALL})
    alice = acme.hosts("Alice")
    form = {"invitation": invited["invitation"]}
    path = "/connections/invitation"
    alice.call("post", path, form=form, **{"X-Request-Id": "of-acme-1"})
    assert {one.partition(".")[0] for one in ids(acme.tenant)} == {"of-acme-1"}
    assert {one.partition(".")[0] for one in ids(faber.tenant)} == {CALL, ""}
    found = Delivery.objects.filter(event__tenant=faber.tenant)
    [caused_by] = {row.request_id for row in found}
    assert caused_by.startswith("of-acme-1.")
    assert {row.event.request_id for row in found} == {""}


def test_a_message_of_another_agent_is_no_call(faber, phone):
    row = phone.connects(faber)
    queues.sweep()
    found = Event.objects.filter(object_key=row.pk).order_by("sequence")
    assert [bool(event.request_id) for event in found] == [True, False, False]
