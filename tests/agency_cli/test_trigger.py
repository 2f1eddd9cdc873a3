"""`agency-cli trigger EVENT`, with a served API and the worker of simulated holders."""

import json
import threading

import pytest
from django.db import connection

from agency_cli import trigger
from agency_cli.__main__ import main
from tests.sandbox.people import holders_answer
from tests.support.people import Organization
from webhooks.events.types import Type

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def organization(transactional_db, stored_keys):
    return Organization("Faber College", is_test=True)


@pytest.fixture
def worker():
    """What the worker does for simulated holders, in a thread of the test."""
    stopped = threading.Event()

    def work():
        while not stopped.wait(0.05):
            holders_answer()
        connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    yield
    stopped.set()
    thread.join()


@pytest.fixture
def run(organization, live_server, monkeypatch, capsys):
    monkeypatch.setenv("ACCESS_TOKEN", organization.made.access_token)
    monkeypatch.setenv("SUBSCRIPTION_KEY", organization.made.subscription_key)
    monkeypatch.setattr(trigger, "POLL_SECONDS", 0.05)

    def run(event):
        code = main(["trigger", "--url", live_server.url, event])
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


def test_each_event_comes_of_the_act_that_is_named(organization, worker, run):
    assert set(trigger.ACTS) <= set(Type)
    for event in trigger.ACTS:
        code, shown = run(event)
        assert code == 0, shown
        assert json.loads(shown)["message_type"] == event


def test_only_a_test_organization_has_them(run, organization):
    organization.tenant.is_test = False
    organization.tenant.save(update_fields=["is_test"])
    code, shown = run("credential_issued")
    assert code == 1 and "The agency refuses" in shown
