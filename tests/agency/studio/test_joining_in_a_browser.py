"""An invited member comes in, in Chromium."""

from django.core import mail

from tenants.models import Membership, Role
from tests.agency.studio.test_members import link_in
from tests.support.chromium import MARKS

pytestmark = MARKS
PASSWORD = "correct horse battery"
PATH = "location.pathname"


def send(page, **fields):
    """Fill in the form on the page that has these fields, and send it."""
    page.evaluate("window.wasHere = true")
    for name, value in fields.items():
        page.evaluate(f"document.querySelector('main [name={name}]').value = '{value}'")
    last = f"document.querySelector('main [name={next(iter(fields))}]')"
    page.evaluate(f"{last}.form.requestSubmit()")
    page.wait_for("!window.wasHere && document.readyState === 'complete'")


def click(page, selector):
    page.evaluate("window.wasHere = true")
    page.evaluate(f"document.querySelector('{selector}').click()")
    page.wait_for("!window.wasHere && document.readyState === 'complete'")


def test_an_invited_member_signs_up_and_joins(page, browser, college, url, settings):
    settings.EMAIL_URL = "smtp://mail.example"
    browser.send(f"{url}/members/invite", email="ada@faber.example", role=Role.OPERATOR)
    page.open(link_in(mail.outbox[-1]))
    assert page.evaluate(PATH) == "/studio/invitation"
    click(page, 'main a[href^="/accounts/signup/"]')
    send(page, email="ada@faber.example", password1=PASSWORD)
    assert page.evaluate(PATH) == "/studio/invitation"
    click(page, "main form button")
    assert page.evaluate(PATH) == url
    member = Membership.objects.get(user__email="ada@faber.example")
    assert member.role == Role.OPERATOR
