"""People as they come in, in Chromium: an invited member in each role, and TOTP."""

import pytest
from django.core import mail

from agency.studio.menu import MENU
from tenants.models import Membership, Role
from tests.agency.studio.test_members import link_in
from tests.support import chromium

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium"),
]
PASSWORD = "correct horse battery"
MENU_LABELS = "[...document.querySelectorAll('nav.menu a')].map((a) => a.textContent)"
PATH = "location.pathname"


@pytest.fixture(scope="module")
def chrome(tmp_path_factory):
    with chromium.running(tmp_path_factory.mktemp("chromium")) as page:
        page.call("Network.enable")
        yield page


@pytest.fixture
def page(chrome, live_server, settings):
    settings.PUBLIC_URL = live_server.url
    settings.EMAIL_URL = "smtp://mail.example"
    chrome.call("Network.clearBrowserCookies")
    yield chrome
    chrome.call("Page.navigate", url="about:blank")


def send(page, **fields):
    """Fill in the form on the page that has these fields, and send it."""
    page.evaluate("window.wasHere = true")
    for name, value in fields.items():
        page.evaluate(
            f"document.querySelector('main [name={name}]').value = '{value}'"
        )
    last = f"document.querySelector('main [name={next(iter(fields))}]')"
    page.evaluate(f"{last}.form.requestSubmit()")
    page.wait_for("!window.wasHere && document.readyState === 'complete'")


def click(page, selector):
    page.evaluate("window.wasHere = true")
    page.evaluate(f"document.querySelector('{selector}').click()")
    page.wait_for("!window.wasHere && document.readyState === 'complete'")


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.DEVELOPER])
def test_an_invited_member_signs_up_joins_and_sees_the_pages_of_the_role(
    page, browser, college, url, live_server, role
):
    browser.send(f"{url}/members/invite", email="ada@faber.example", role=role)
    page.open(live_server.url + link_in(mail.outbox[-1]))
    assert page.evaluate(PATH) == "/studio/invitation"
    click(page, 'main a[href^="/accounts/signup/"]')
    send(page, email="ada@faber.example", password1=PASSWORD)
    assert page.evaluate(PATH) == "/studio/invitation"
    click(page, "main form button")
    assert page.evaluate(PATH) == url
    assert "You are a member of Faber College now." in page.evaluate(
        "document.getElementById('messages').textContent"
    )
    member = Membership.objects.get(user__email="ada@faber.example")
    assert member.role == role
    shown = set(page.evaluate(MENU_LABELS))
    for _, entries in MENU:
        for entry in entries:
            is_opened = member.may(entry.permission) and not entry.is_for_tests
            assert (entry.label in shown) == is_opened, entry
