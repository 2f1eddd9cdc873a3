"""Support's pages in Chromium, on a phone without scripts.

The pages of the catalog (tests/agency/pages) are theirs too.
"""

import pytest

from tests.support.chromium import MARKS, PHONE

pytestmark = MARKS


@pytest.fixture
def visit(page, browser):
    """Open a page on a phone, as Sue."""
    page.sign_in(browser)
    page.resize(PHONE)
    return page.open


def test_a_phone_without_scripts_finds_the_reason(visit, page, faber):
    alice = faber.hosts("Alice")
    faber.asks(alice, attributes=[{"policyName": "Full name"}])
    alice.auto_selects()
    page.stop_scripts()
    visit(f"/admin/tenants/tenant/{faber.tenant.pk}/change/")
    page.evaluate("document.querySelector('.support-menu-link a').click()")
    page.wait_for("location.pathname === '/admin/' && !!document.querySelector('h2')")
    page.evaluate("document.querySelector('a[href$=\"tenants/tenant/\"]').click()")
    page.wait_for("!!document.querySelector('#result_list a')")
    page.evaluate("document.querySelector('#result_list tbody th a').click()")
    page.wait_for("!!document.querySelector('#failures')")
    page.evaluate("document.querySelector('[aria-labelledby=failures] a').click()")
    page.wait_for("location.pathname.includes('/verification/')")
    page.wait_for("document.body?.textContent.includes('No card that proves this.')")
