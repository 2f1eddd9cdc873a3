"""From sign up to the first call, and to the end of a key."""

import subprocess

import pytest
from django.test import Client

from tenants.models import Tenant
from tests.support.pages import Browser, secrets_on
from tests.support.people import Api, ApiError
from tests.support.races import at_once

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "correct horse battery"
NEW = "/studio/organizations/new"


def signed_up():
    browser = Browser()
    fields = {"email": "fay@faber.example", "password1": PASSWORD}
    response = browser.post("/accounts/signup/", fields, follow=True)
    assert response.request["PATH_INFO"] == "/studio/organizations/new"
    return browser


def created(browser):
    return browser.send(NEW, name="Faber College", network_id="local")


def test_a_person_signs_up_and_calls_the_api_until_the_key_is_revoked():
    browser = signed_up()
    response = created(browser)
    token, subscription, _ = secrets_on(response)
    api = Api(token, subscription)
    assert api.post("/api/wallets", {"ownerName": "Alice"})["ownerName"] == "Alice"
    tenant = response.context["tenant"]
    [key] = tenant.keys.filter(kind="access_token")
    browser.send(f"/studio/organizations/{tenant.pk}/keys/{key.pk}/revoke")
    with pytest.raises(ApiError, match="401"):
        api.get("/api/wallets")


def read_by_a_shell(command):
    """The words that `curl` would get."""
    script = f"curl() {{ printf '%s\\0' \"$@\"; }}\n{command}"
    shell = subprocess.run(
        ["sh", "-eu", "-c", script], capture_output=True, text=True, check=True
    )
    return shell.stdout.split("\0")[:-1]


@pytest.mark.slow
def test_the_example_on_the_page_makes_a_wallet():
    url, *options = read_by_a_shell(created(signed_up()).context["example"])
    given = list(zip(options[::2], options[1::2], strict=True))
    headers = dict(value.split(": ", 1) for flag, value in given if flag == "-H")
    body = dict(given)["-d"]
    path = "/" + url.split("/", 3)[3]
    response = Client().post(
        path, body, content_type=headers["Content-Type"], headers=headers
    )
    assert response.json()["ownerName"] == "Alice"


def test_the_keys_are_folded_and_on_no_other_page():
    browser = signed_up()
    response = created(browser)
    tenant, secrets = response.context["tenant"], secrets_on(response)
    assert len(secrets) == 3
    page, own = response.text, f"/studio/organizations/{tenant.pk}"
    before, _, folded = page.partition("Keys for developers</summary>")
    assert f'<details class="small" data-address="{own}">' in before
    assert not [secret for secret in secrets if secret in before]
    assert f'<a class="button" href="{own}/definitions/new">Next step</a>' in folded
    assert f'<a href="{own}" aria-current="page">Overview</a>' in page
    for path in ("/studio/", own, NEW):
        page = browser.get(path).text
        assert not [secret for secret in secrets if secret in page]
    assert not [secret for secret in secrets if secret in str(dict(browser.session))]


def test_a_double_click_makes_one_organization():
    browser = signed_up()
    form = {"name": "Faber College", "network_id": "local", "form_token": "1"}

    def click():
        again = Browser()
        again.cookies = browser.cookies
        return again.post(NEW, form)

    answers = at_once(click, click, click)
    assert sorted(len(secrets_on(answer)) for answer in answers) == [0, 0, 3]
    reloaded = browser.post(NEW, form, follow=True)
    assert not secrets_on(reloaded) and "counts once" in reloaded.text
    assert len(reloaded.context["memberships"]) == 1
    assert Tenant.objects.count() == 1


def test_one_organization_too_many_is_refused_with_a_sentence(settings):
    settings.QUOTA_ORGANIZATIONS = 1
    browser = signed_up()
    created(browser)
    response = created(browser)
    assert response.status_code == 409
    page = response.text
    assert "You may have 1 organizations (QUOTA_ORGANIZATIONS)." in page
    assert 'value="Faber College"' in page, "the form is still filled in"
    assert Tenant.objects.count() == 1
