"""Pages of members and of the log in Chromium: accessible, at any width."""

import os
from pathlib import Path

import pytest
from django.core import mail

from tenants import audit, members
from tenants.models import Membership, Role
from tests.agency.studio.conftest import browser_of, person
from tests.agency.studio.test_accessibility import RUN, axe
from tests.agency.studio.test_members import LINK
from tests.support import chromium

__all__ = ["axe"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium"),
]
DESKTOP, PHONE, SMALLEST = 1280, 390, 320
LONG = "W" * 60
WIDE = (  # elements that reach beyond the right edge
    "[...document.querySelectorAll('main *')].filter((one) =>"
    " !one.closest('thead') && one.getBoundingClientRect().right > innerWidth + 1)"
    ".map((one) => one.outerHTML.slice(0, 120))"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with chromium.running(tmp_path_factory.mktemp("chromium")) as page:
        page.call("Network.enable")
        yield page


@pytest.fixture
def paths(browser, college, url, settings):
    """The pages, with long names and something of everything on them."""
    settings.EMAIL_URL = "smtp://mail.example"
    college.tenant.name = LONG
    college.tenant.save()
    long_name = f"{LONG}@faber.example"
    vic = person("vic")
    type(vic).objects.filter(pk=vic.pk).update(email=long_name)
    member = members.add_member(
        college.tenant, vic, Role.OPERATOR, by=audit.SYSTEM, reason=LONG
    )
    browser.send(f"{url}/settings", primary_color="#112233")
    browser.send(f"{url}/members/invite", email=f"i{long_name}", role="viewer")
    link = f"/invitations/{LINK.search(mail.outbox[-1].body)[1]}"
    assert Membership.objects.count() == 2
    return [
        f"{url}/members",
        f"{url}/members/{member.pk}/remove",
        f"{url}/leave",
        f"{url}/log",
        f"{url}/delete",
        "/accounts/2fa/",
        link,
    ]


@pytest.fixture
def visit(page, live_server, settings, fay):
    settings.PUBLIC_URL = live_server.url
    session = browser_of(fay).cookies[settings.SESSION_COOKIE_NAME].value
    page.set_cookie(live_server.url, settings.SESSION_COOKIE_NAME, session)

    def visit(path, width, scheme="light"):
        page.prefer(scheme)
        size = {"width": width, "height": 800, "deviceScaleFactor": 1}
        page.call("Emulation.setDeviceMetricsOverride", **size, mobile=width < 500)
        page.open(live_server.url + path)
        return page

    yield visit
    page.call("Network.clearBrowserCookies")
    page.call("Page.navigate", url="about:blank")


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_finding_of_axe(visit, axe, paths, scheme, width):
    found = {}
    for number, path in enumerate(paths):
        page = visit(path, width, scheme)
        if folder := os.environ.get("SCREENSHOTS"):
            page.screenshot(Path(folder) / f"people-{number}-{width}-{scheme}.png")
        page.evaluate(axe)
        found[path] = page.evaluate(RUN)
    assert {path: one for path, one in found.items() if one} == {}


def test_no_page_scrolls_sideways(visit, paths):
    for path in paths:
        for width in (SMALLEST, PHONE, DESKTOP):
            page = visit(path, width)
            assert page.evaluate(WIDE) == [], path
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path
