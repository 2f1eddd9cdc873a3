"""Support's pages in Chromium, on a phone without scripts.

The pages of the catalog (tests/agency/pages) are theirs too.
"""

import pytest

from tests.agency.pages.test_in_a_browser import page

__all__ = ["page"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium"),
]


@pytest.fixture
def visit(page, browser, live_server, settings):
    """Open a page on a phone, as Sue."""
    settings.PUBLIC_URL = live_server.url
    name = settings.SESSION_COOKIE_NAME
    page.call("Network.clearBrowserCookies")
    page.set_cookie(live_server.url, name, browser.cookies[name].value)
    size = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    page.call("Emulation.setDeviceMetricsOverride", **size)
    yield lambda path: page.open(live_server.url + path)
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    page.call("Page.navigate", url="about:blank")


def test_a_phone_without_scripts_finds_the_reason(visit, page, faber):
    alice = faber.hosts("Alice")
    faber.asks(alice, attributes=[{"policyName": "Full name"}])
    alice.auto_selects()
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    visit(f"/admin/tenants/tenant/{faber.tenant.pk}/change/")
    page.evaluate("document.querySelector('.support-menu-link a').click()")
    page.wait_for("location.pathname === '/admin/' && !!document.querySelector('h2')")
    page.evaluate("document.querySelector('a[href$=\"tenants/tenant/\"]').click()")
    page.wait_for("!!document.querySelector('#result_list a')")
    page.evaluate("document.querySelector('#result_list tbody th a').click()")
    page.wait_for("!!document.querySelector('#failures')")
    page.evaluate("document.querySelector('[aria-labelledby=failures] a').click()")
    page.wait_for("location.pathname.includes('/verification/')")
    page.wait_for("document.body?.textContent.includes('The holder did not answer')")
