"""Signatures as the receivers' library verifies them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from standardwebhooks import Webhook as Verifier
from standardwebhooks import WebhookVerificationError

from tests.support.webhook_receiver import call_example
from webhooks.delivery import signing
from webhooks.models import Webhook

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def called(faber, receiver):
    """Calls the receiver and returns the call."""
    return lambda webhook: call_example(faber, webhook) and receiver.calls[-1]


def verifies(secret, call):
    try:
        return Verifier(secret).verify(call.data, call.headers) == call.body
    except WebhookVerificationError:
        return False


def test_a_call_verifies_with_the_secret_that_was_shown_once(faber, registers, called):
    webhook = registers()
    call = called(webhook)
    assert webhook["secret"].startswith("whsec_")
    assert verifies(webhook["secret"], call)
    assert not verifies(registers()["secret"], call), "another webhook's secret"
    assert not verifies(webhook["secret"], call._replace(data=call.data + b" "))
    shown = [*faber.get("/webhooks"), faber.get(f"/webhooks/{webhook['id']}")]
    assert not [one for one in shown if "secret" in one]


def test_after_a_rotation_both_secrets_verify_for_a_day(faber, registers, called):
    webhook = registers()
    path, first = f"/webhooks/{webhook['id']}/secret", webhook["secret"]
    rotated = faber.post(path)
    end = datetime.fromisoformat(rotated["previousExpiresAtUtc"]) - datetime.now(UTC)
    assert timedelta(hours=23) < end <= timedelta(hours=24)
    second, call = rotated["secret"], called(webhook)
    assert verifies(first, call) and verifies(second, call)
    Webhook.objects.update(previous_until=datetime.now(UTC))
    call = called(webhook)
    assert not verifies(first, call) and verifies(second, call)
    third, fourth = faber.post(path)["secret"], faber.post(path)["secret"]
    call = called(webhook)
    verified = [verifies(one, call) for one in (second, third, fourth)]
    assert verified == [False, True, True], "after two rotations it is dead"


def test_the_vector_of_the_specifications_libraries():
    """As in the reference libraries' tests of `sign`, in any time zone."""
    moment = datetime.fromtimestamp(1614265330, UTC)
    elsewhere = moment.astimezone(timezone(timedelta(hours=5, minutes=30)))
    for sent_at in (moment, elsewhere):
        made = signing.signature_headers(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            '{"test": 2432232314}',
            ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
            sent_at,
        )
        assert made == {
            "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
            "webhook-timestamp": "1614265330",
            "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        }
