"""Signatures as the receivers' library verifies them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from tests.support.webhook_receiver import worker_calls
from webhooks.delivery import signing
from webhooks.models import Webhook

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def called(faber, receiver):
    """Calls the receiver and answers the call."""

    def call(webhook):
        faber.post(
            f"/webhooks/{webhook['id']}/example", {"messageType": "verification"}
        )
        worker_calls()
        return receiver.calls[-1]

    return call


def verifies(secret, call):
    try:
        return Verifier(secret).verify(call.data, call.headers) == call.body
    except WebhookVerificationError:
        return False


def test_a_call_verifies_with_the_secret_that_registration_showed(registers, called):
    webhook = registers()
    call = called(webhook)
    assert verifies(webhook["secret"], call)
    assert not verifies(registers()["secret"], call), "another webhook's secret"
    assert not verifies(webhook["secret"], call._replace(data=call.data + b" "))


def test_the_secret_is_shown_once(faber, registers):
    webhook = registers()
    assert webhook["secret"].startswith("whsec_")
    others = [faber.get("/webhooks")[0], faber.get(f"/webhooks/{webhook['id']}")]
    assert not [one for one in others if "secret" in one]


def test_after_a_rotation_both_secrets_verify_for_a_day(faber, registers, called):
    webhook = registers()
    rotated = faber.post(f"/webhooks/{webhook['id']}/secret")
    end = datetime.fromisoformat(rotated["previousExpiresAtUtc"]) - datetime.now(UTC)
    assert timedelta(hours=23) < end <= timedelta(hours=24)
    call = called(webhook)
    assert verifies(webhook["secret"], call) and verifies(rotated["secret"], call)
    Webhook.objects.update(previous_until=datetime.now(UTC))
    call = called(webhook)
    assert not verifies(webhook["secret"], call) and verifies(rotated["secret"], call)


def test_after_two_rotations_the_first_secret_is_dead(faber, registers, called):
    webhook = registers()
    path = f"/webhooks/{webhook['id']}/secret"
    second, third = faber.post(path)["secret"], faber.post(path)["secret"]
    call = called(webhook)
    assert [verifies(one, call) for one in (webhook["secret"], second, third)] == [
        False,
        True,
        True,
    ]


def test_the_vector_of_the_specifications_libraries():
    """As in the reference libraries' tests of `sign`."""
    moment = datetime.fromtimestamp(1614265330, UTC)
    made = signing.signature_headers(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        '{"test": 2432232314}',
        ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
        moment,
    )
    assert made == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_the_zone_of_the_time_does_not_matter():
    moment = datetime.now(UTC)
    elsewhere = moment.astimezone(timezone(timedelta(hours=5, minutes=30)))
    secrets = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]
    assert signing.signature_headers(
        "m", "{}", secrets, moment
    ) == signing.signature_headers("m", "{}", secrets, elsewhere)
