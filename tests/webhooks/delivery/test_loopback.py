"""A webhook on this machine: called with the settings of `make run`, else refused."""

import os
import subprocess
import sys

import pytest

from agency.devtools.run import DEVELOPER_SETTINGS
from tests.support.processes import database_of_test
from tests.support.webhook_receiver import receiving
from webhooks.models import Delivery, Webhook

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
REGISTERS = """
import json, sys, django
django.setup()
from django.test import Client
token, subscription, url = sys.argv[1:]
headers = {"Authorization": f"bearer {token}", "X-Streetcred-Subscription-Key": subscription}
body = json.dumps({"url": url, "type": "Notification"})
answer = Client(headers=headers).post("/webhooks", body, "application/json")
print(answer.status_code, answer.json().get("code"))
"""


def in_a_process(program, *arguments, **given):
    """Run a program on the test's database with its own settings.

    Return its output.
    """
    own = {"DATABASE_URL": database_of_test(), "ALLOWED_HOSTS": "*"}
    environment = os.environ | own | given
    environment["DJANGO_SETTINGS_MODULE"] = "agency.settings"
    command = [sys.executable, "-c", program, *arguments]
    ran = subprocess.run(
        command, env=environment, timeout=60, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def registers(faber, url, **given):
    made = faber.made
    return in_a_process(
        REGISTERS, made.access_token, made.subscription_key, url, **given
    )


CALLS = "import django; django.setup(); from webhooks import tasks; tasks.deliver()"


@pytest.fixture
def receiver():
    with receiving() as receiver:
        yield receiver


def test_it_is_called_under_the_settings_of_make_run(faber, receiver):
    assert registers(faber, receiver.url, **DEVELOPER_SETTINGS) == "200 None"
    faber.post(
        f"/webhooks/{Webhook.objects.get().pk}/example",
        {"messageType": "verification"},
    )
    in_a_process(CALLS, **DEVELOPER_SETTINGS)
    assert receiver.types == ["verification"]


def test_it_is_refused_by_default(faber, receiver):
    assert registers(faber, receiver.url) == "400 invalid_request"
    assert registers(faber, receiver.url, DEBUG="1") == "400 invalid_request"
    secure = receiver.url.replace("http://", "https://")
    assert registers(faber, secure) == "400 address_refused"
    assert not Webhook.objects.exists()


def test_it_is_not_called_by_default(faber, receiver):
    registers(faber, receiver.url, **DEVELOPER_SETTINGS)
    faber.post(
        f"/webhooks/{Webhook.objects.get().pk}/example",
        {"messageType": "verification"},
    )
    in_a_process(CALLS, DEBUG="1")
    assert receiver.calls == []
    assert Delivery.objects.get().last_error == "address_refused"
