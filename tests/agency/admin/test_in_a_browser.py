"""Support's own pages in Chromium: accessible, narrow, without scripts or problems.

Lists and records are Django's, with our colors; here they are checked for their width
on a phone only.
"""

import os
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from connections.models import Connection
from tenants.models import Membership
from tests.agency.pages.catalog import WORD
from tests.agency.pages.test_in_a_browser import AXE, LOADED, page
from tests.agency.studio.test_accessibility import axe
from verifications.models import Verification
from webhooks.models import Webhook

__all__ = ["axe", "page"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium"),
]
PICTURES = os.environ.get("SUPPORT_SCREENSHOTS", "")
# What sticks out of a window of this width. A phone would widen `innerWidth`.
TOO_WIDE = """document.documentElement.scrollWidth <= %d ? [] :
  [...document.querySelectorAll("body *")]
    .filter((one) => one.getBoundingClientRect().right > %d + 1)
    .map((one) => `${one.tagName}.${one.className}`)"""
HEIGHT = "Math.min(document.documentElement.scrollHeight, 4000)"


@pytest.fixture
def paths(faber, sue):
    """The addresses of support's pages, of an organization with long names."""
    sue.is_superuser = True  # sees every button
    sue.save()
    tenant = faber.tenant
    tenant.name = f"Faber {WORD}"
    tenant.save()
    alice = faber.hosts(f"Alice {WORD}")
    faber.asks(alice, attributes=[{"policyName": WORD}])
    alice.auto_selects()
    Connection.objects.filter(role="inviter").update(name=f"Alice {WORD}")
    faber.post("/webhooks", {"url": f"https://office.example/{WORD.lower()}"})
    Webhook.objects.update(is_enabled=False)
    nina = User.objects.create_user("nina", f"{'n' * 60}@faber.example")
    Membership.objects.create(tenant=tenant, user=nina)
    failed = Verification.objects.get(role="verifier")
    hook = Webhook.objects.get()
    return {
        "index": "/admin/",
        "search": "/admin/search/?q=alice",
        "found_nothing": "/admin/search/?q=nobody",
        "customer": f"/admin/tenants/tenant/{tenant.pk}/change/",
        "add_member": f"/admin/act/add-member/{tenant.pk}/",
        "enable_webhook": f"/admin/act/enable-webhook/{hook.pk}/",
        "queues": "/admin/queues/",
        "verification": f"/admin/verifications/verification/{failed.pk}/change/",
        "verifications": "/admin/verifications/verification/",
        "person": f"/admin/auth/user/{nina.pk}/change/",
        "organizations": "/admin/tenants/tenant/",
    }


OURS = [
    "index", "search", "found_nothing", "customer", "add_member", "enable_webhook",
    "queues",
]  # fmt: skip


@pytest.fixture
def visit(page, paths, browser, live_server, settings):
    """A function that opens a page at a width."""
    settings.PUBLIC_URL = live_server.url
    name = settings.SESSION_COOKIE_NAME
    page.call("Network.clearBrowserCookies")
    page.set_cookie(live_server.url, name, browser.cookies[name].value)

    def open_page(name, width):
        resize(page, width, 900)
        page.open(live_server.url + paths[name])
        path = paths[name].partition("?")[0]
        assert page.evaluate("location.pathname") == path

    yield open_page
    page.call("Emulation.setScriptExecutionDisabled", value=False)
    page.call("Page.navigate", url="about:blank")


def resize(page, width, height):
    size = {"width": width, "height": height, "deviceScaleFactor": 1}
    page.call("Emulation.setDeviceMetricsOverride", **size, mobile=width < 500)


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_axe_finds_nothing(visit, page, axe, scheme, width):
    page.prefer(scheme)
    found = {}
    for name in OURS:
        visit(name, width)
        page.evaluate(axe)
        found[name] = page.evaluate(AXE)
    assert {name: one for name, one in found.items() if one} == {}


@pytest.mark.parametrize("width", [320, 390])
def test_no_page_scrolls_sideways_on_a_phone(visit, page, paths, width):
    found = {}
    for name in OURS:
        visit(name, width)
        found[name] = page.evaluate(TOO_WIDE % (width, width))
    assert {name: one for name, one in found.items() if one} == {}


def test_no_page_writes_to_the_console_or_calls_another_host(
    visit, page, paths, live_server
):
    for name in paths:
        visit(name, 1280)
        assert page.evaluate("window.problems") == [], name
        loaded = page.evaluate(LOADED)
        own = (live_server.url + "/", "data:")
        assert [one for one, _ in loaded if not one.startswith(own)] == [], name
        assert [one for one, status in loaded if status >= 400] == [], name


def test_a_phone_without_scripts_finds_the_reason(visit, page, paths):
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    visit("customer", 390)
    page.evaluate("document.querySelector('.support-menu-link a').click()")
    page.wait_for("location.pathname === '/admin/' && !!document.querySelector('h2')")
    page.evaluate("document.querySelector('a[href$=\"tenants/tenant/\"]').click()")
    page.wait_for("!!document.querySelector('#result_list a')")
    page.evaluate("document.querySelector('#result_list tbody th a').click()")
    page.wait_for("!!document.querySelector('#failures')")
    page.evaluate("document.querySelector('[aria-labelledby=failures] a').click()")
    page.wait_for("location.pathname.includes('/verification/')")
    page.wait_for("document.body?.textContent.includes('The holder did not answer')")


@pytest.mark.skipif(not PICTURES, reason="SUPPORT_SCREENSHOTS names no folder")
def test_pictures(visit, page, paths):
    folder = Path(PICTURES)
    folder.mkdir(exist_ok=True)
    for scheme in ("light", "dark"):
        page.prefer(scheme)
        for name in paths:
            for width in (1280, 390):
                visit(name, width)
                resize(page, width, max(900, page.evaluate(HEIGHT)))
                page.screenshot(folder / f"{name}-{width}-{scheme}.png")
