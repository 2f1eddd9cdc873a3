"""The settings of an organization in the studio."""

import re
from datetime import UTC, datetime

import pytest

from tenants.models import DailyUsage, Tenant

pytestmark = pytest.mark.django_db
SETTINGS = {
    "primary_color": "#0B6B62",
    "secondary_color": "",
    "default_language": "ar",
    "wallet_apps": (
        "Example Wallet https://apps.apple.com/app/id1 https://play.google.com/x\r\n"
        "\r\nOther https://other.example"
    ),
    "return_urls": "https://shop.example/done\r\nhttps://other.example",
    "values_kept_days": "30",
    "exchanges_kept_days": "400",
}


def test_they_are_saved_and_shown_again(browser, college, url):
    assert browser.send(f"{url}/settings", **SETTINGS).status_code == 302
    tenant = Tenant.objects.get(pk=college.tenant.pk)
    assert (tenant.primary_color, tenant.default_language) == ("#0b6b62", "ar")
    assert tenant.wallet_apps == [
        {
            "name": "Example Wallet",
            "urls": ["https://apps.apple.com/app/id1", "https://play.google.com/x"],
        },
        {"name": "Other", "urls": ["https://other.example"]},
    ]
    assert tenant.return_urls == ["https://shop.example/done", "https://other.example"]
    assert (tenant.values_kept_days, tenant.exchanges_kept_days) == (30, 400)
    page = browser.get(f"{url}/settings").content.decode()
    assert "Other https://other.example" in page
    assert 'value="#0b6b62"' in page
    browser.send(f"{url}/settings", **SETTINGS, invalid_proof_answer="ack")
    browser.send(f"{url}/settings", short_qr_codes="on")
    tenant.refresh_from_db()
    assert tenant.invalid_proof_answer == "ack"
    assert tenant.short_qr_codes
    assert (tenant.primary_color, tenant.wallet_apps, tenant.return_urls) == (
        "",
        [],
        [],
    )


def test_days_that_a_request_leaves_out_stay(browser, college, url):
    browser.send(f"{url}/settings", **SETTINGS)
    browser.send(f"{url}/settings", values_kept_days="")
    tenant = Tenant.objects.get(pk=college.tenant.pk)
    assert (tenant.values_kept_days, tenant.exchanges_kept_days) == (None, 400)


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("primary_color", "red", "Give a color as #"),
        ("secondary_color", "#12345g", "Give a color as #"),
        ("default_language", "xx", "Choose one of the languages."),
        ("invalid_proof_answer", "silence", "Select a valid choice."),
        ("values_kept_days", "0", "greater than or equal to 1"),
        ("exchanges_kept_days", "4000", "less than or equal to 3650"),
        ("wallet_apps", "https://a.example", "Give each wallet app a name"),
        ("wallet_apps", "Purse", "one to 3 addresses"),
        ("return_urls", "http://shop.example", "begins with https://"),
        ("return_urls", "https://shop.example/?x", "Leave out what follows"),
    ],
)
def test_a_wrong_one_is_said_and_nothing_is_saved(
    browser, college, url, field, value, message
):
    response = browser.send(f"{url}/settings", **SETTINGS | {field: value})
    page = response.content.decode()
    assert response.status_code == 200
    assert message in page
    assert "https://other.example" in page or field == "wallet_apps"
    assert Tenant.objects.get(pk=college.tenant.pk).return_urls is None


def test_only_who_manages_changes_them(viewer, stranger, college, url):
    assert viewer.send(f"{url}/settings", **SETTINGS).status_code == 403
    assert stranger.send(f"{url}/settings", **SETTINGS).status_code == 404


def test_others_do_not_open_the_page(viewer, stranger, developer, url):
    assert viewer.get(f"{url}/settings").status_code == 403
    assert stranger.get(f"{url}/settings").status_code == 404
    assert developer.get(f"{url}/settings").status_code == 200


def test_the_overview_leads_to_the_page_and_has_no_form_of_it(browser, viewer, url):
    page = browser.get(url).content.decode()
    assert f'href="{url}/settings"' in page and "Save settings" not in page
    assert f"{url}/settings" not in viewer.get(url).content.decode()


def test_the_page_shows_the_usage_of_twelve_months(browser, college, url):
    today = datetime.now(UTC).date()
    DailyUsage.objects.create(
        tenant=college.tenant,
        day=today,
        connections=4711,
        credentials=812,
        verifications=307,
        webhook_calls=9090,
    )
    page = browser.get(f"{url}/settings").content.decode()
    row = page.partition(f"{today:%B %Y}</th>")[2].partition("</tr>")[0]
    assert re.findall(r">(\d+)</td>", row) == ["4711", "812", "307", "9090"]
    assert page.count('data-label="Webhook calls"') == 12


def test_the_page_shows_quotas_where_there_are_some(browser, college, url, settings):
    settings.QUOTA_WALLETS, settings.QUOTA_CONNECTIONS = 25, 0
    page = browser.get(f"{url}/settings").content.decode()
    assert re.search(r"Wallets</th><td[^>]*>0</td><td[^>]*>25</td>", page)
    assert "Connections and open" not in page
    type(college.tenant.provider).objects.update(has_quotas=False)
    assert "Quotas" not in browser.get(f"{url}/settings").content.decode()
