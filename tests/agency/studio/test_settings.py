"""The settings of an organization in the studio."""

import pytest

from tenants.models import Tenant

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
    page = browser.get(url).content.decode()
    assert "Other https://other.example" in page
    assert 'value="#0b6b62"' in page
    browser.send(f"{url}/settings", short_qr_codes="on")
    tenant.refresh_from_db()
    assert tenant.short_qr_codes
    assert (tenant.primary_color, tenant.wallet_apps, tenant.return_urls) == (
        "",
        [],
        [],
    )


@pytest.mark.parametrize(
    "field, value, message",
    [
        ("primary_color", "red", "Give a color as #"),
        ("secondary_color", "#12345g", "Give a color as #"),
        ("default_language", "xx", "Choose one of the languages."),
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
