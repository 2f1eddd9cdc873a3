"""The menu of each page: the organization's pages, and the others to switch to."""

import re

from agency.studio.menu import MAX_SWITCHER, MENU
from tenants.models import Membership, Role, Tenant
from tests.agency.studio.conftest import browser_with
from tests.factories import MembershipFactory

LINK = re.compile(r'<a href="([^"]*)"(?: aria-current="(\w+)")?>(?:<bdi>)?([^<]*)<')


def menu_of(response):
    """`{label: (address, aria-current)}` of the menu on a page."""
    page = response.text
    menu = page.partition('<nav class="menu"')[2].partition("</nav>")[0]
    return {label: (url, current) for url, current, label in LINK.findall(menu)}


def current(response):
    found = menu_of(response).items()
    return [(label, how) for label, (_, how) in found if how]


def test_every_page_of_the_menu_opens_and_is_marked(browser, url, college):
    Tenant.objects.filter(pk=college.tenant.pk).update(is_test=True)
    menu = menu_of(browser.get(url))
    entries = [entry for _, entries in MENU for entry in entries]
    assert entries
    for entry in entries:
        response = browser.get(menu[entry.label][0])
        assert response.status_code == 200
        assert current(response) == [(entry.label, "page")]


def test_each_role_sees_the_pages_that_it_may_open(url, college):
    for role in Role.values:
        labels = menu_of(browser_with(role, college.tenant, role).get(url))
        member = Membership(role=role)
        for entry in (entry for _, entries in MENU for entry in entries):
            is_opened = member.may(entry.permission) and not entry.is_for_tests
            assert (entry.label in labels) == is_opened, (role, entry)


def test_a_page_within_another_marks_that_one(browser, url, college):
    key = college.tenant.keys.first()
    page = browser.get(f"{url}/keys/{key.pk}/revoke")
    assert current(page) == [("Keys", "true")]


def test_pages_without_an_organization_have_no_links_of_one(browser, college):
    labels = menu_of(browser.get("/studio/?all"))
    assert "Faber College" in labels and "Webhooks" not in labels


def test_who_has_one_organization_is_led_to_it(browser, fay, url):
    assert browser.get("/studio/").url == url
    assert "All organizations" in browser.get(url).text
    assert "Faber College" in browser.get("/studio/?all").text
    MembershipFactory(user=fay)
    assert browser.get("/studio/").status_code == 200


def test_the_switcher_has_others_by_name_and_is_bounded(browser, fay, url):
    for name in ("Beta", "Acme"):
        MembershipFactory(tenant__name=name, user=fay)
    labels = list(menu_of(browser.get(url)))
    assert labels[:4] == ["Acme", "Beta", "All organizations", "New organization"]
    for number in range(MAX_SWITCHER):
        MembershipFactory(tenant__name=f"A{number}", user=fay)
    page = browser.get(url).text
    assert "<bdi>Faber College</bdi></span></summary>" in page
    assert len(re.findall("<bdi>(?:A[0-9]+|Acme|Beta)</bdi></a>", page)) == MAX_SWITCHER


def test_without_an_account_there_is_no_menu(client, db):
    for path in ("/accounts/login/", "/"):
        assert menu_of(client.get(path)) == {}
