"""The API docs of an organization in Chromium: own ids, and the server's address."""

from django.urls import reverse

from tests.agency.studio.test_accessibility import IS_SHOWN, TRY_IT
from tests.support.chromium import MARKS
from tests.support.people import Organization

pytestmark = MARKS
OPERATION = "operations-Connections-getConnection"
FIELD = f"#{OPERATION} [data-param-name=connectionId] input"


def test_the_page_shows_own_ids_and_the_address_of_the_server(
    page, browser, fay, stored_keys
):
    school = Organization("School", owner=fay)
    connection = school.invites(name="Alice")["connectionId"]
    page.sign_in(browser)
    page.open(reverse("studio:api_docs", args=[school.tenant.pk]), ready=IS_SHOWN)
    page.evaluate(TRY_IT % ("Connections", OPERATION, OPERATION))
    page.wait_for(f"!!document.querySelector('{FIELD}')?.value")
    shown = page.evaluate(f"document.querySelector('{FIELD}').value")
    server = page.evaluate("document.querySelector('.servers select').value")
    assert (shown, server) == (connection, page.base)
