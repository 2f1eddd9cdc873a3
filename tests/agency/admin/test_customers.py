"""The customer page: what support needs to know of one organization."""

import html
import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission
from django.utils import timezone
from django.utils.formats import date_format

from connections.models import OutboundMessage
from credentials.models import Credential
from tests.factories import MembershipFactory, UserFactory
from tests.support.database import restored
from tests.support.people import Organization
from verifications.models import Verification
from wallets.models import Key
from webhooks.models import Event, Webhook

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("customer"),  # before other rows: it is restored
]
VALUES = {"name": "Ada Lovelace-4711", "year": "36000001"}
UNANSWERED = "The holder did not answer this item."


@restored
def customer():
    """An organization with a proof that failed and an offer that nobody accepts."""
    faber = Organization("Faber College")
    alice = faber.hosts("Alice")
    faber.offers(alice, faber.defines("name", "year"), VALUES)
    faber.asks(alice, attributes=[{"policyName": "Full name"}])
    alice.auto_selects()
    return faber


def page_of(browser, organization):
    path = f"/admin/tenants/tenant/{organization.tenant.pk}/change/"
    response = browser.get(path)
    assert response.status_code == 200
    return html.unescape(response.text)


def section(page, name):
    pattern = rf'<section aria-labelledby="{name}">.*?</section>'
    return re.search(pattern, page, re.S)[0]


def follow(browser, path, text):
    """Click the first link with this text. Return the address it leads to."""
    page = html.unescape(browser.get(path).text)
    links = re.findall(r'<a [^>]*href="([^"]+)"[^>]*>(.*?)</a>', page, re.S)
    return next(href for href, label in links if text in label)


def test_why_a_verification_failed_takes_three_clicks(browser, customer):
    customers = follow(browser, "/admin/", "Organizations")
    college = follow(browser, customers, "Faber College")
    failed = follow(browser, college, "Not valid")
    page = html.unescape(browser.get(failed).text)
    assert "Full name" in page and UNANSWERED in page


def test_it_shows_why_verifications_failed_and_who_declined(browser, customer):
    row, bob = Verification.objects.get(role="verifier"), customer.hosts("Bob")
    customer.asks(bob, attributes=[{"policyName": "Full name"}])
    asked = bob.newest("verifications")["verificationId"]
    bob.put(f"/verifications/{asked}/decline")
    failures = section(page_of(browser, customer), "failures")
    assert "Full name: No card that proves this." in failures
    assert f"/admin/verifications/verification/{row.pk}/change/" in failures
    assert "Ended without an answer" in failures
    assert "The other side ended the exchange." in failures


def test_an_exchange_is_stuck_when_it_has_not_moved_for_a_day(browser, customer):
    assert "None." in section(page_of(browser, customer), "stuck")
    long_ago = timezone.now() - timedelta(hours=25)
    Credential.objects.update(updated_at=long_ago)
    row = Credential.objects.get(role="issuer")
    row.change_notes({"reference": "order 4711"})  # which moves nothing
    stuck = section(page_of(browser, customer), "stuck")
    assert f"{date_format(long_ago, 'DATETIME_FORMAT')} UTC" in stuck
    assert f"/admin/credentials/credential/{row.pk}/change/" in stuck
    assert "waits for the other side" in stuck
    other = Credential.objects.get(role="holder")
    assert str(other.pk) not in stuck


def test_failing_and_disabled_webhooks_come_first(browser, customer):
    for number in range(3):
        customer.post("/webhooks", {"url": f"https://office-{number}.example/secret"})
    rows = list(Webhook.objects.order_by("-pk"))
    Webhook.objects.filter(pk=rows[2].pk).update(is_enabled=False)
    failing = timezone.now() - timedelta(hours=3)
    Webhook.objects.filter(pk=rows[1].pk).update(failing_since=failing)
    text = section(page_of(browser, customer), "webhooks")
    assert re.findall(r"https://office-(\d).example/…", text) == ["0", "1", "2"]
    assert "secret" not in text
    assert "<strong>disabled</strong>" in text
    assert "<strong>failing</strong> since <time" in text


def test_it_shows_the_last_event_people_and_keys(browser, customer):
    nina = UserFactory(username="nina", is_active=False)
    MembershipFactory(tenant=customer.tenant, user=nina, role="viewer")
    page = page_of(browser, customer)
    last = Event.objects.order_by("-pk").first()
    assert re.search(rf"Last event</dt><dd><a [^>]+{last.pk}[^>]+>{last.type}<", page)
    people = section(page, "people")
    assert "nina@faber.example" in people and "Viewer" in people
    assert "<strong>disabled</strong>" in people
    keys = section(page, "keys")
    for key in customer.tenant.keys.all():
        assert key.hint in keys


def test_it_counts_usage(browser, customer):
    alice = customer.hosts("Bob")
    alice.receives(customer, customer.defines("name", "year"), VALUES)
    key = Key.objects.filter(tenant=customer.tenant).first()
    lost = {"type": "x/1.0/y", "thread_id": "1", "is_hosted": False, "my_key": key}
    OutboundMessage.objects.create(tenant=customer.tenant, status="exhausted", **lost)
    usage = section(page_of(browser, customer), "usage")
    figures = dict(re.findall(r"<dt>([^<]+)</dt><dd><a [^>]+>([\d,+]+)</a>", usage))
    assert figures == {
        "Connections": "4", "Holders' wallets": "2", "Open issuances": "2",
        "Open verifications": "0", "Issued this month": "1", "Verified this month": "1",
        "Messages out given up": "1", "Messages in given up": "0",
        "Publications pending": "0",
    }  # fmt: skip


def test_each_link_of_the_page_leads_to_a_page(browser, customer, request, subtests):
    page = page_of(browser, customer)
    request.getfixturevalue("nothing_is_rendered")
    links = re.findall(r'<a [^>]*href="(/admin/[^"]+)"', page)
    # One of each kind: with another record it is the same page.
    kinds = {re.sub(r"[0-9a-f-]{36}", "", link): link for link in links}
    assert len(kinds) > 20
    for link in kinds.values():
        with subtests.test(link):
            assert browser.get(link).status_code == 200


def test_its_lists_hold_rows_of_this_organization_only(browser, customer, acme):
    alice = acme.hosts("Alice")
    acme.asks(alice, attributes=[{"policyName": "Full name"}])
    links = section(page_of(browser, acme), "lists")
    [path] = re.findall(r'href="([^"]+)">Verifications', links)
    shown = set(re.findall(r"verification/([0-9a-f-]{36})/", browser.get(path).text))
    row = Verification.objects.get(wallet__is_organization=True, tenant=acme.tenant)
    assert shown == {str(row.pk)}


def test_sections_need_the_permission_of_their_records(browser, sue, customer):
    wanted = Permission.objects.filter(codename="view_tenant")
    sue.user_permissions.set(wanted)
    page = page_of(browser, customer)
    for name in ("failures", "stuck", "webhooks", "people", "keys"):
        assert f'aria-labelledby="{name}"' not in page
    assert customer.tenant.keys.first().hint not in page
    assert "Last event" not in page
    for key in ("x", "00000000-0000-0000-0000-000000000000"):
        assert browser.get(f"/admin/tenants/tenant/{key}/change/").status_code == 404
    sue.user_permissions.clear()
    path = f"/admin/tenants/tenant/{customer.tenant.pk}/change/"
    assert browser.get(path).status_code == 403
