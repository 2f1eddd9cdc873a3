"""The page on which staff see how the queues fare."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.factories import HeartbeatFactory, InboundMessageFactory

pytestmark = pytest.mark.django_db(transaction=True)


def test_it_names_a_queue_that_is_late(faber, browser):
    due = timezone.now() - timedelta(minutes=5)
    InboundMessageFactory(tenant=faber.tenant, due_at=due)
    page = browser.get("/admin/queues/").text
    assert "connections.InboundMessage" in page
    assert "300 s <strong>late: is the worker running?</strong>" in page
    assert "Faber" not in page


def test_it_names_a_kind_of_process_that_is_missing(browser, settings):
    settings.EXPECTED_PROCESSES = ["web", "beat"]
    HeartbeatFactory()
    page = browser.get("/admin/queues/").text
    assert page.count("missing: start it") == 1
    assert "late:" not in page, "nothing waits"
