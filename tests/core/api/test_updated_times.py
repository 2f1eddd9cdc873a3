"""`updatedAtUtc` grows with each change of what an object shows."""

from datetime import timedelta

import pytest
from django.utils import timezone
from drf_spectacular.generators import SchemaGenerator

from tenants.models import ApiKey
from tests.credentials.bulk.people import sent, worker_issues
from tests.support.webhook_receiver import worker_calls
from verifications import kiosks
from webhooks import tasks
from webhooks.models import Webhook

pytestmark = pytest.mark.django_db(transaction=True)
# They never change.
RECORDS = {"EventContract", "LoggedRequestContract"}


def assert_grows(read, *changes):
    """read: returns the object. Each change makes it another one."""
    seen = read()
    assert seen["createdAtUtc"] <= seen["updatedAtUtc"]
    for number, change in enumerate(changes):
        change()
        now = read()
        assert now["updatedAtUtc"] > seen["updatedAtUtc"], number
        assert now | {"updatedAtUtc": seen["updatedAtUtc"]} != seen, number
        seen = now


def test_what_tells_its_creation_tells_its_last_change():
    document = SchemaGenerator().get_schema(request=None, public=True)
    schemas = document["components"]["schemas"].items()
    created, updated = (
        {name for name, shape in schemas if member in shape.get("properties", {})}
        for member in ("createdAtUtc", "updatedAtUtc")
    )
    assert created - updated == RECORDS and not updated - created


def test_that_of_a_webhook_grows_also_during_a_recovery(faber):
    body = {"url": "https://office.example", "messageTypes": ["connection_invited"]}
    path = f"/webhooks/{faber.post('/webhooks', body)['id']}"

    def fails():
        faber.invites()
        worker_calls()

    def recovery_ends():
        Webhook.objects.update(recovery_started_at=timezone.now() - timedelta(hours=1))
        tasks.maintain()
        assert "recoveringSinceUtc" not in faber.get(path)

    assert_grows(
        lambda: faber.get(path),
        fails,
        lambda: faber.put(f"{path}/disable"),
        lambda: faber.put(f"{path}/enable"),
        lambda: faber.post(f"{path}/recover"),
        lambda: faber.call("patch", path, {"retryUnconfirmed": True}),
        recovery_ends,
    )


def test_that_of_a_delivery_grows_with_each_call(faber):
    webhook = faber.post("/webhooks", {"url": "https://office.example"})["id"]
    faber.post(f"/webhooks/{webhook}/example", {"messageType": "verification"})
    [made] = faber.get(f"/webhooks/{webhook}/deliveries")
    path = f"/webhooks/{webhook}/deliveries/{made['deliveryId']}"

    def is_given_up():
        faber.put(f"/webhooks/{webhook}/disable")
        tasks.maintain()
        assert faber.get(path)["status"] == "Exhausted"
        faber.put(f"/webhooks/{webhook}/enable")

    assert_grows(
        lambda: faber.get(path),
        worker_calls,
        lambda: faber.post(f"{path}/resend"),
        is_given_up,
    )


def test_that_of_a_key_grows_with_its_use_and_its_rotation(faber):
    """Its use is noted once a minute."""
    made = faber.post("/keys", {"name": "Desk", "kind": "subscription_key"})
    key = ApiKey.objects.get(pk=made["keyId"])

    def read():
        listed = {one["keyId"]: one for one in faber.get("/keys")}
        return listed[made["keyId"]]

    assert_grows(read, lambda: key.record_use("127.0.0.1"), key.rotate)


def test_that_of_a_kiosk_grows_when_a_screen_asks(faber):
    body = {"name": "P", "version": "1", "attributes": [{"policyName": "name"}]}
    policy = faber.post("/verificationPolicies", body)["policyId"]
    made = faber.post("/kiosks", {"name": "Desk", "policyId": policy})
    kiosk = kiosks.find_kiosk(made["url"].rpartition("/")[2])
    path = f"/kiosks/{made['kioskId']}"
    assert_grows(lambda: faber.get(path), lambda: kiosks.next_screen(kiosk))


def test_that_of_a_bulk_grows_with_its_state_and_its_turns(faber):
    bulk = sent(faber, faber.defines("name", "year"), ["Alice,2001"])["bulkId"]
    path = f"/credentials/bulk/{bulk}"
    assert_grows(
        lambda: faber.get(path),
        lambda: faber.post(f"{path}/pause"),
        lambda: faber.post(f"{path}/resume"),
        worker_issues,
    )
