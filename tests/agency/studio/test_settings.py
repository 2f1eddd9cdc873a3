"""The settings of an organization in the studio, and its end."""

import re

import pytest
from allauth.account.models import EmailAddress

from agency.studio.forms import SettingsForm
from agency.studio.settings_page import TABS
from tenants.models import AuditEntry, Tenant
from tests.agency.studio.conftest import read
from tests.factories import DailyUsageFactory

pytestmark = pytest.mark.django_db
APP, PLAY = "https://apps.apple.com/app/id1", "https://play.google.com/x"
SETTINGS = {
    "primary_color": "#0B6B62", "secondary_color": "", "default_language": "ar",
    "wallet_apps": f"Example Wallet {APP} {PLAY}\r\n\r\nOther https://other.example",
    "return_urls": "https://shop.example/done\r\nhttps://other.example",
    "values_kept_days": "30", "exchanges_kept_days": "400",
    "visitor_wallets_a_day": "70",
}  # fmt: skip


def test_they_are_saved_and_shown_again(browser, college, url):
    assert browser.send(f"{url}/settings", **SETTINGS).status_code == 302
    tenant = Tenant.objects.get(pk=college.tenant.pk)
    assert (tenant.primary_color, tenant.default_language) == ("#0b6b62", "ar")
    assert tenant.wallet_apps == [
        {"name": "Example Wallet", "urls": [APP, PLAY]},
        {"name": "Other", "urls": ["https://other.example"]},
    ]
    assert tenant.return_urls == ["https://shop.example/done", "https://other.example"]
    assert (tenant.values_kept_days, tenant.exchanges_kept_days) == (30, 400)
    page = browser.get(f"{url}/settings?tab=holders").text
    page += browser.get(f"{url}/settings").text
    assert "Other https://other.example" in page
    assert 'value="#0b6b62"' in page
    browser.send(f"{url}/settings", **SETTINGS, invalid_proof_answer="ack")
    browser.send(f"{url}/settings", short_qr_codes="on")
    tenant.refresh_from_db()
    assert tenant.invalid_proof_answer == "ack"
    assert tenant.short_qr_codes
    assert tenant.primary_color == "" and not tenant.wallet_apps
    assert tenant.return_urls == []
    # Days that a request leaves out stay, and a number that it leaves empty.
    browser.send(f"{url}/settings", values_kept_days="", visitor_wallets_a_day="")
    tenant.refresh_from_db()
    assert tenant.visitor_wallets_a_day == 70
    assert (tenant.values_kept_days, tenant.exchanges_kept_days) == (None, 400)


WRONG = [
    ("name", "", ""),
    ("name", " ", ""),
    ("name", "x" * 201, ""),
    ("image_url", "http://x.y/z", ""),
    ("primary_color", "red", "Give a color as #"),
    ("secondary_color", "#12345g", "Give a color as #"),
    ("default_language", "xx", "Choose one of the languages."),
    ("invalid_proof_answer", "silence", "Select a valid choice."),
    ("values_kept_days", "0", "greater than or equal to 1"),
    ("visitor_wallets_a_day", "0", "greater than or equal to 1"),
    ("exchanges_kept_days", "4000", "less than or equal to 3650"),
    ("wallet_apps", "https://a.example", "Give each wallet app a name"),
    ("wallet_apps", "Purse", "one to 3 addresses"),
    ("return_urls", "http://shop.example", "begins with https://"),
    ("return_urls", "https://shop.example/?x", "Leave out what follows"),
]


def test_a_wrong_one_is_said_and_nothing_is_saved(browser, college, url):
    for field, value, message in WRONG:
        response = browser.send(f"{url}/settings", **SETTINGS | {field: value})
        page = response.text
        assert response.status_code == 200 and f'id="id_{field}_error"' in page
        assert message in page and "<bdi>Faber College</bdi>" in page
        assert "https://other.example" in page or field == "wallet_apps"
    tenant = Tenant.objects.get(pk=college.tenant.pk)
    assert (tenant.name, tenant.return_urls) == ("Faber College", None)


def test_the_name_and_the_logo_are_changed(browser, url):
    logo = "https://faber.example/logo.png"
    for fields in ({"name": "Faber University", "image_url": logo}, {"image_url": ""}):
        browser.send(f"{url}/settings", **fields)
        tenant = Tenant.objects.get()
        found = (tenant.name, tenant.image_url)
        assert found == ("Faber University", fields["image_url"])


def test_the_page_shows_usage_and_quotas(browser, college, url, settings):
    settings.QUOTA_WALLETS, settings.QUOTA_CONNECTIONS = 25, 0
    used = {"connections": 4711, "credentials": 812, "verifications": 307}
    today = DailyUsageFactory(tenant=college.tenant, **used, webhook_calls=9090).day
    page = browser.get(f"{url}/settings?tab=developers").text
    row = page.partition(f"{today:%B %Y}</th>")[2].partition("</tr>")[0]
    assert re.findall(r">(\d+)</td>", row) == ["4711", "812", "307", "9090"]
    assert page.count('data-label="Webhook calls"') == 12
    assert re.search(r"Wallets</th><td[^>]*>0</td><td[^>]*>25</td>", page)
    assert "Connections and open" not in page
    type(college.tenant.provider).objects.update(has_quotas=False)
    assert "Quotas" not in browser.get(f"{url}/settings?tab=developers").text


def test_each_setting_has_its_place_in_one_of_four_tabs(browser, url):
    found = []
    for tab in TABS:
        page = read(browser, f"{url}/settings?tab={tab}")
        assert f'href="?tab={tab}" aria-current="page"' in page
        found += re.findall(r'<(?:input|select|textarea)[^>]* name="(\w+)"', page)
    fields = [name for name in found if name not in ("csrfmiddlewaretoken", "q")]
    assert sorted(fields) == sorted(SettingsForm.base_fields)
    first = 'href="?tab=brand" aria-current="page"'
    assert first in read(browser, f"{url}/settings?tab=x")


def test_a_tab_changes_its_own_settings_only(browser, college, url):
    browser.send(f"{url}/settings", **SETTINGS, names_for_all="on")
    answer = browser.send(f"{url}/settings?tab=privacy", values_kept_days="7")
    assert answer.url == f"{url}/settings?tab=privacy"
    tenant = Tenant.objects.get(pk=college.tenant.pk)
    assert (tenant.values_kept_days, tenant.names_for_all) == (7, False)
    assert (tenant.primary_color, tenant.visitor_wallets_a_day) == ("#0b6b62", 70)
    assert len(tenant.wallet_apps) == 2
    wrong = browser.send(f"{url}/settings?tab=brand", name="")
    assert "Give the organization a name." in wrong.text


def test_the_phone_beside_it_has_what_is_typed(browser, college, url):
    typed = {"name": "Faber <b>U</b>", "primary_color": "#7A1F5C", "live": "yes"}
    part = browser.send(f"{url}/settings?tab=brand", **typed).text
    assert part.startswith('<div class="phone') and "#7a1f5c" in part
    assert "<bdi>Faber &lt;b&gt;U&lt;/b&gt;</bdi> offers you a card" in part
    assert Tenant.objects.get(pk=college.tenant.pk).primary_color == ""
    # What cannot be used is not shown, and gets into no style sheet.
    wrong = browser.send(f"{url}/settings?tab=brand", **typed | {"primary_color": "x"})
    assert "#0b6b62" in wrong.text
    address = f"{url}/settings/colors.css?primary=%237a1f5c&secondary=}}*{{"
    css = browser.get(address)
    assert css["Content-Type"].startswith("text/css")
    assert ".phone { --accent:" in css.text and "*{" not in css.text


def test_an_organization_is_deleted_after_its_name_is_typed(browser, college, url):
    assert f"{url}/delete" in read(browser, f"{url}/settings?tab=privacy")
    page = browser.get(f"{url}/delete")
    assert page.status_code == 200 and Tenant.objects.exists()
    wrong = browser.send(f"{url}/delete", typed_name="faber college")
    assert "This is not the name of the organization." in wrong.text
    assert Tenant.objects.exists()
    done = browser.send(f"{url}/delete", typed_name="Faber College")
    assert done["Location"] == "/studio/"
    assert not Tenant.objects.exists()
    assert browser.get(url).status_code == 404
    entry = AuditEntry.objects.get(action="organization.deleted")
    assert entry.tenant_id == college.tenant.pk
    assert entry.details == {"name": "Faber College"}


def test_an_organization_may_need_a_confirmed_address(browser, fay, settings):
    settings.STUDIO_VERIFY_EMAIL = True
    form = {"name": "Faber", "network_id": "local"}
    address = EmailAddress.objects.filter(user=fay)
    address.update(verified=False)
    refused = browser.send("/studio/organizations/new", **form)
    assert refused["Location"] == "/accounts/email/"
    assert browser.get("/studio/organizations/new").status_code == 302
    assert not Tenant.objects.exists()
    address.update(verified=True)
    browser.send("/studio/organizations/new", **form)
    assert Tenant.objects.get().name == "Faber"
