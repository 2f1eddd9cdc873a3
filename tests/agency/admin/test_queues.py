"""The page on which staff see how the queues fare."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from agency.ops.models import Heartbeat
from connections.models import InboundMessage

pytestmark = pytest.mark.django_db(transaction=True)


def late_message(tenant, **seconds):
    due = timezone.now() - timedelta(**seconds)
    InboundMessage.objects.create(
        tenant=tenant, recipient_key="key", message_id="1", type="x", due_at=due
    )


def test_it_names_a_queue_that_is_late(faber, browser):
    late_message(faber.tenant, minutes=5)
    page = browser.get("/admin/queues/").content.decode()
    assert "connections.InboundMessage" in page
    assert "300 s <strong>late: is the worker running?</strong>" in page
    assert "Faber" not in page


def test_no_queue_is_late_where_nothing_waits(browser):
    assert "late:" not in browser.get("/admin/queues/").content.decode()


def test_the_first_page_leads_to_it(browser):
    assert 'href="/admin/queues/"' in browser.get("/admin/").content.decode()


def test_the_page_of_queues_is_for_staff():
    assert Client().get("/admin/queues/").status_code == 302


def test_it_names_a_kind_of_process_that_is_missing(browser, settings):
    settings.EXPECTED_PROCESSES = ["web", "beat"]
    Heartbeat.objects.create(kind="web", host="h", pid=1, version="1")
    page = browser.get("/admin/queues/").content.decode()
    assert page.count("missing: start it") == 1
