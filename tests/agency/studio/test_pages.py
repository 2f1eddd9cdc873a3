"""The pages themselves: home, account pages, the form of an organization."""

import pytest
from django.core import mail

from core.api import error_pages
from tenants.models import Tenant


def test_home_says_what_this_is_and_leads_in(client, browser):
    assert browser.get("/")["Location"] == "/studio/", "who is signed in"
    assert client.get("/docs/")["Location"] == "/docs"
    page = client.get("/").text
    for link in ("/accounts/signup/", "/accounts/login/", "/docs"):
        assert f'href="{link}"' in page
    before, _, after = page.partition("For developers")
    assert "Create an account" in before
    assert "curl" not in before and "curl" in after


def test_the_rule_for_passwords_is_said_before(client, db, settings):
    [length] = [
        one["OPTIONS"]["min_length"]
        for one in settings.AUTH_PASSWORD_VALIDATORS
        if "MinimumLength" in one["NAME"]
    ]
    page = client.get("/accounts/signup/").text
    assert f"At least {length} characters." in page
    assert page.count('type="password"') == 1


def test_sign_up_can_be_closed(client, db, settings):
    settings.STUDIO_SIGN_UP = False
    assert "/accounts/signup/" not in client.get("/").text
    assert "Sign up is closed" in client.get("/accounts/signup/").text
    fields = {"email": "x@example.org", "password1": "long enough 1"}
    page = client.post("/accounts/signup/", fields).text
    assert "Sign up is closed" in page


def test_mail_links_to_the_public_address_whatever_the_host(client, fay, settings):
    settings.ALLOWED_HOSTS = ["*"]
    headers = {"host": "evil.example"}
    client.post("/accounts/password/reset/", {"email": fay.email}, headers=headers)
    [message] = mail.outbox
    assert f"{settings.PUBLIC_URL}/accounts/password/reset/key/" in message.body
    assert "evil.example" not in message.body + message.subject


NEW = "/studio/organizations/new"
WRONG = [
    ("name", ""), ("name", "x" * 201), ("image_url", "http://faber.example/logo.png"),
    ("image_url", "javascript:alert(1)"), ("network_id", "nowhere"),
]  # fmt: skip


def test_a_wrong_field_is_named_and_a_corrected_form_accepted(browser):
    form = {"name": "Faber College", "image_url": "", "network_id": "local"}
    for field, value in WRONG:
        page = browser.send(NEW, **form | {field: value}).text
        assert f'id="id_{field}_error"' in page
        assert "<title>Error: " in page
        assert not Tenant.objects.exists()
    token = page.split('name="form_token" value="')[1].split('"')[0]
    assert browser.post(NEW, form | {"form_token": token}).status_code == 302
    assert Tenant.objects.get().name == "Faber College"


@pytest.mark.parametrize("ticked", [{"visitor_wallets": "on"}, {}])
def test_a_new_organization_may_let_holders_make_wallets(browser, ticked):
    box = browser.get(NEW).text.split('name="visitor_wallets"')[1]
    assert "checked" in box.split(">")[0]
    browser.send(NEW, name="<b>Bold</b>", network_id="local", **ticked)
    assert Tenant.objects.get().visitor_wallets is bool(ticked)
    page = browser.get("/studio/", follow=True).text
    assert "Bold" in page and "<b>Bold" not in page


@pytest.mark.parametrize(("given", "kept"), [("90", 90), ("7", 7), ("", None)])
def test_who_makes_an_organization_chooses_how_long_values_are_kept(
    browser, given, kept
):
    page = browser.get(NEW).text.split('<form class="card"')[1]
    shown = page.split("<details")[0]
    assert 'value="90"' in shown.split('name="values_kept_days"')[1].split(">")[0]
    form = {"name": "Faber College", "network_id": "local"}
    refused = browser.send(NEW, **form, values_kept_days="0").text
    assert 'id="id_values_kept_days_error"' in refused and not Tenant.objects.exists()
    browser.send(NEW, **form, values_kept_days=given)
    assert Tenant.objects.get().values_kept_days == kept


@pytest.mark.parametrize("status", [500, 503])
def test_the_page_of_an_outage_needs_no_database(rf, status):
    """Without the `db` fixture a query is an error."""
    request = rf.get("/studio/", headers={"Accept": "text/html"})
    request.id = "request-of-fay"
    answer = error_pages.outage_response(request, status, "not_ready", "Try again.")
    page = answer.text
    assert answer.status_code == status and len(page) < 2000
    assert "request-of-fay" in page and "/static/agency/agency.css" in page
