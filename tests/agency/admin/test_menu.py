"""The menu of the admin is by what people look for."""

import re

from django.contrib import admin
from django.contrib.auth.models import Permission
from django.urls import resolve

from agency.support.menu import MENU, NAMES, PAGES


def menu_of(page):
    """The headings of the menu beside a page, with the names of their entries."""
    [nav] = re.findall(r'<nav class="support-menu".*?</nav>', page, re.S)
    sections = re.findall(r"<p id=[^>]*>([^<]+)</p>\s*<ul[^>]*>(.*?)</ul>", nav, re.S)
    return {
        name: re.findall(r"<a [^>]+>([^<]+)</a>", entries) for name, entries in sections
    }


def test_every_model_is_in_the_menu_once():
    keys = [key for _, entries in MENU for key in entries if key not in PAGES]
    assert len(keys) == len(set(keys))
    registered = {model._meta.label_lower for model in admin.site._registry}
    assert registered == set(keys)
    assert set(NAMES) <= set(keys)


def test_each_page_has_the_menu(browser):
    menu = menu_of(browser.get("/admin/tenants/tenant/").text)
    assert list(menu) == [
        "Customers", "Exchanges", "Webhooks", "Queues", "Definitions", "People", "Log",
        "Settings",
    ]  # fmt: skip
    assert menu["Customers"][0] == "Organizations"
    assert menu["Exchanges"][0] == "Verifications"


def test_the_menu_holds_what_the_person_may_view(browser, sue):
    wanted = Permission.objects.filter(codename="view_webhook")
    sue.user_permissions.set(wanted)
    menu = menu_of(browser.get("/admin/webhooks/webhook/").text)
    assert menu == {"Webhooks": ["Webhooks"]}


def test_the_first_page_leads_to_each_list(browser):
    page = browser.get("/admin/").text
    links = set(re.findall(r'href="(/admin/[a-z]+/[a-z]*/?)"', page))
    assert len(links) > 30
    assert all(resolve(link).url_name for link in links)  # the last route has none
