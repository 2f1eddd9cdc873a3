"""The page of the log of API calls."""

import re

import pytest
from django.urls import reverse

from tenants.lifecycle.provisioning import create_organization
from tenants.models import LoggedRequest
from tests.support.request_log import written

__all__ = ["written"]
pytestmark = pytest.mark.django_db(transaction=True)
PART = {"HX-Request": "true"}


@pytest.fixture
def page(college):
    return reverse("studio:requests", args=[college.tenant.pk])


@pytest.fixture
def refused(api, written):
    """The answer to a call for something that does not exist, among others."""
    api.get("/connections")
    answer = api.send("get", "/credentials/v1/connections/nobody")
    api.post("/connections", {"name": "Alice"})
    written()
    return answer


def routes_on(response):
    return re.findall(r"(?:GET|POST) <code>([^<]*)</code>", response.text)


def test_an_error_is_found_by_its_request_id(browser, college, page, refused):
    identifier = refused["X-Request-Id"]
    found = browser.get(page, {"request_id": identifier})
    assert routes_on(found) == ["/credentials/v1/connections/{connectionId}"]
    assert "/docs/errors#not_found" in found.text
    # The search box of every page leads there.
    search = reverse("studio:search", args=[college.tenant.pk])
    shown = browser.get(search, {"q": identifier}).text
    assert f'{page}?request_id={identifier}"' in shown


FILTERS = [
    ({}, 3), ({"status": "4xx"}, 1), ({"status": "200"}, 2), ({"method": "POST"}, 1),
    ({"route": "/connections"}, 2), ({"error_code": "not_found"}, 1),
    ({"until": "2020-01-01T00:00"}, 0), ({"since": "2020-01-01T00:00"}, 3),
]  # fmt: skip


def test_the_page_has_the_filters_of_the_api(browser, college, page, refused):
    for filters, number in FILTERS:
        assert len(routes_on(browser.get(page, filters))) == number, filters
    key = college.tenant.keys.get(kind="access_token")
    shown = browser.get(page, {"key": str(key.pk)})
    assert len(routes_on(shown)) == 3 and key.hint in shown.text
    assert college.access_token not in shown.text
    for wrong in ({"status": "ok"}, {"since": "x"}, {"key": "1"}):
        shown = browser.get(page, wrong)
        assert routes_on(shown) == [] and 'class="errorlist"' in shown.text


def test_newer_and_older_lead_through_it(browser, page, api, written, monkeypatch):
    monkeypatch.setattr("agency.studio.newest_first.PAGE_SIZE", 2)
    for _ in range(3):
        api.get("/connections")
    written()
    first = browser.get(page)
    [older] = re.findall(r'rel="next" href="([^"]*)"', first.text)
    second = browser.get(page + older)
    assert len(routes_on(first)) == 2 and len(routes_on(second)) == 1
    [newer] = re.findall(r'rel="prev" href="([^"]*)"', second.text)
    assert routes_on(browser.get(page + newer)) == routes_on(first)


def test_only_the_first_page_reads_itself_again(
    browser, page, api, refused, written, monkeypatch
):
    shown = browser.get(page).text
    [part] = re.findall(r'data-watched hx-get="([^"]*)"', shown)
    assert browser.get(part, headers=PART).status_code == 204
    api.get("/webhooks")
    written()
    changed = browser.get(part, headers=PART)
    assert routes_on(changed)[0] == "/webhooks" and b"<html" not in changed.content
    [toggle] = re.findall(r'href="([^"]*)" id="live-toggle"', shown)
    assert b"data-watched" not in browser.get(page + toggle).content
    monkeypatch.setattr("agency.studio.newest_first.PAGE_SIZE", 2)
    [older] = re.findall(r'rel="next" href="([^"]*)"', browser.get(page).text)
    assert b"data-watched" not in browser.get(page + older).content


def test_a_viewer_sees_calls_without_addresses(viewer, browser, page, refused):
    assert b"from 127.0.0.1" in browser.get(page).content
    shown = viewer.get(page)
    assert len(routes_on(shown)) == 3 and b"127.0.0.1" not in shown.content


def test_no_page_shows_the_calls_of_another_organization(browser, page, refused, fay):
    other = create_organization("Other", owner=fay).tenant
    theirs = reverse("studio:requests", args=[other.pk])
    identifier = refused["X-Request-Id"]
    assert routes_on(browser.get(theirs)) == []
    assert routes_on(browser.get(theirs, {"request_id": identifier})) == []
    search = reverse("studio:search", args=[other.pk])
    found = browser.get(search, {"q": identifier})
    assert b"/requests?request_id" not in found.content


def test_without_a_log_the_page_says_so(browser, page, settings):
    settings.REQUEST_LOG_ROWS = 0
    assert b"logs no calls" in browser.get(page).content
    assert not LoggedRequest.objects.exists()
