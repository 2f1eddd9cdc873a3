"""Lists and records of the admin are called by what people know, and name the customer."""

import html
import re
from uuid import uuid4

import pytest
from django.contrib import admin
from django.utils.html import strip_tags

from agency.support.menu import name_of
from credentials.models import Credential
from tenants.models import AuditEntry, Tenant
from tests.agency.pages.catalog import SHORT, open_world
from tests.support.people import Organization
from webhooks.models import Event

pytestmark = pytest.mark.django_db(transaction=True)
ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
DAY = re.compile(r"\b\d{1,2} [A-Z][a-z]{2} \d{4}\b")
OTHER_DAYS = re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d|[ap]\.m\.|\bago\b")


def heading(page):
    return html.unescape(strip_tags(re.search(r"<h1>(.*?)</h1>", page, re.S)[1]))


def test_no_list_and_no_record_has_an_id_or_a_sentence_as_its_title(
    transactional_db, stored_keys, subtests
):
    world = open_world(SHORT)
    titles = {str(name_of(model)) for model in admin.site._registry}
    for name, _, address in world.records():
        with subtests.test(name):
            page = world.staff.get(address).text
            title = heading(page)
            assert not ID.search(title) and not title.startswith(("Select", "View"))
            crumbs = re.search(r'<div class="breadcrumbs">(.*?)</div>', page, re.S)[1]
            assert not ID.search(strip_tags(crumbs))
            if name.endswith("_changelist"):
                assert title in titles
            shown = strip_tags(page)
            assert not OTHER_DAYS.search(shown), OTHER_DAYS.search(shown)


@pytest.fixture
def offered(stored_keys):
    faber = Organization("Faber College")
    card = faber.defines("name", "year", recipientAttribute="name")
    faber.offers(faber.hosts("Alice"), card, {"name": "Ada Lovelace-4711", "year": "1"})
    return faber


def test_a_record_and_a_row_lead_to_the_organization_first(browser, offered):
    row = Credential.objects.get(role="issuer")
    customer = f'href="/admin/tenants/tenant/{offered.tenant.pk}/change/"'
    page = browser.get(f"/admin/credentials/credential/{row.pk}/change/").text
    assert re.fullmatch(
        rf"Credential of Faber College, {DAY.pattern}, \d\d:\d\d UTC", heading(page)
    )
    crumbs = re.findall(r'<div class="breadcrumbs">(.*?)</div>', page, re.S)[0]
    first, organization, credentials = re.findall(r"<a [^>]+>", crumbs)
    assert customer in organization and "credentials/credential/" in credentials
    page = browser.get("/admin/credentials/credential/").text
    line = re.search(r'<tr><td class="field-organization.*?</tr>', page, re.S)[0]
    links = re.findall(r"<a [^>]*href[^>]+>", line)
    assert customer in links[0] and str(row.pk) in page
    assert not ID.search(strip_tags(line))


def test_the_organization_of_a_deleted_customer_is_no_link(browser, offered):
    Event.objects.exclude(pk=Event.objects.first().pk).delete()
    Tenant.objects.filter(pk=offered.tenant.pk).update(deleted_at="2026-01-01T00:00Z")
    page = browser.get("/admin/webhooks/event/").text
    assert "Faber College" in page and f"/tenant/{offered.tenant.pk}" not in page


def test_the_log_outlives_an_organization_that_was_erased(browser, offered):
    entry = AuditEntry.objects.create(
        tenant_id=uuid4(), action="organization.deleted", actor_kind="system"
    )
    assert browser.get("/admin/tenants/auditentry/").status_code == 200
    path = f"/admin/tenants/auditentry/{entry.pk}/change/"
    assert browser.get(path).status_code == 200


def test_support_sees_no_names_of_people_on_cards(browser, offered, subtests):
    row = Credential.objects.get(role="issuer")
    assert row.unsealed_recipient_name() == "Ada Lovelace-4711"
    for path in (
        f"/admin/tenants/tenant/{offered.tenant.pk}/change/",
        "/admin/credentials/credential/",
        f"/admin/credentials/credential/{row.pk}/change/",
        "/admin/search/?q=Ada",
        "/admin/webhooks/event/",
    ):
        with subtests.test(path):
            answer = browser.get(path)
            assert answer.status_code == 200 and "Lovelace" not in answer.text
    assert "Nothing has" in browser.get("/admin/search/?q=Ada").text
