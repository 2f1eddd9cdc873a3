"""Credentials of some days are revoked in Chromium, after they were counted."""

from datetime import timedelta

import pytest

from tests.agency.studio.test_revoke_many import now, page, revoked
from tests.agency.studio.test_webhooks_in_a_browser import tab, text_of

__all__ = ["page", "tab"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium"),
]
FILL = "document.querySelector('[name=issued_before]').value = '{}'"


def test_those_of_some_days_are_counted_and_then_revoked(tab, page, live_server):
    tab.open(live_server.url + page.removesuffix("/revoke"))
    tab.tab.click("text=Revoke many")
    tab.wait_for("!!document.querySelector('[name=issued_before]')")
    tab.evaluate(FILL.format((now() - timedelta(days=1)).date().isoformat()))
    tab.tab.click("text=Count them")
    tab.wait_for("document.body?.textContent.includes('can be revoked')")
    assert "1 credential can be revoked" in text_of(tab) and not revoked()
    tab.tab.click("main button.destructive")
    tab.wait_for("document.body?.textContent.includes('1 of them are revoked now')")
    assert revoked() == 1
