"""The API docs of an organization in Chromium: own ids, and the server's address."""

import pytest
from django.urls import reverse

from tests.agency.studio.test_accessibility import IS_SHOWN, TRY_IT
from tests.support import chromium
from tests.support.people import Organization

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.needs("chromium"),
]
OPERATION = "operations-Connections-getConnection"
FIELD = f"#{OPERATION} [data-param-name=connectionId] input"


def test_the_page_shows_own_ids_and_the_address_of_the_server(
    browser, fay, stored_keys, live_server, settings, tmp_path
):
    settings.PUBLIC_URL = live_server.url
    school = Organization("School", owner=fay)
    connection = school.invites(name="Alice")["connectionId"]
    with chromium.running(tmp_path) as page:
        cookie = browser.cookies[settings.SESSION_COOKIE_NAME].value
        page.set_cookie(live_server.url, settings.SESSION_COOKIE_NAME, cookie)
        address = reverse("studio:api_docs", args=[school.tenant.pk])
        page.open(live_server.url + address, ready=IS_SHOWN)
        page.evaluate(TRY_IT % ("Connections", OPERATION, OPERATION))
        page.wait_for(f"!!document.querySelector('{FIELD}')?.value")
        shown = page.evaluate(f"document.querySelector('{FIELD}').value")
        server = page.evaluate("document.querySelector('.servers select').value")
    assert (shown, server) == (connection, live_server.url)
