"""From sign up to the first call, and to the end of a key."""

import subprocess

import pytest
from django.test import Client

from tenants.models import ApiKey, Tenant
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
    """The address of the new organization, to which its form leads."""
    return browser.send(NEW, name="Faber College", network_id="local").url


def test_a_person_signs_up_and_calls_the_api_until_the_key_is_revoked():
    browser = signed_up()
    own = created(browser)
    response = browser.send(f"{own}/keys/first")
    token, subscription, _ = secrets_on(response)
    api = Api(token, subscription)
    assert api.post("/api/wallets", {"ownerName": "Alice"})["ownerName"] == "Alice"
    tenant = response.context["tenant"]
    [key] = tenant.keys.filter(kind="access_token")
    browser.send(f"{own}/keys/{key.pk}/revoke")
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
    browser = signed_up()
    page = browser.send(f"{created(browser)}/keys/first")
    url, *options = read_by_a_shell(page.context["example"])
    given = list(zip(options[::2], options[1::2], strict=True))
    headers = dict(value.split(": ", 1) for flag, value in given if flag == "-H")
    body = dict(given)["-d"]
    path = "/" + url.split("/", 3)[3]
    response = Client().post(
        path, body, content_type=headers["Content-Type"], headers=headers
    )
    assert response.json()["ownerName"] == "Alice"


def test_no_key_is_made_before_somebody_asks_for_it_and_each_is_shown_once():
    browser = signed_up()
    own = created(browser)
    assert not ApiKey.objects.exists() and not secrets_on(browser.get(own))
    before = browser.get(f"{own}/keys").text
    assert "They are shown once" in before and "Make the first keys" in before
    assert '<form method="post" action="' + f"{own}/keys/first" in before
    made = browser.send(f"{own}/keys/first")
    secrets = secrets_on(made)
    assert len(secrets) == 3 and "Shown once: copy them before you go." in made.text
    assert "no-store" in made["Cache-Control"]
    for path in ("/studio/?all", own, f"{own}/keys", NEW):
        page = browser.get(path).text
        assert not [secret for secret in secrets if secret in page]
    assert not [secret for secret in secrets if secret in str(dict(browser.session))]
    assert "Make the first keys" not in browser.get(f"{own}/keys").text


def clicks_on(browser, path, **form):
    """A function that sends one form as the tab of another window does."""

    def click():
        again = Browser()
        again.cookies = browser.cookies
        return again.post(path, form)

    return click


def test_a_double_click_makes_one_organization():
    browser = signed_up()
    form = {"name": "Faber College", "network_id": "local", "form_token": "1"}
    click = clicks_on(browser, NEW, **form)
    answers = at_once(click, click, click)
    assert {answer.status_code for answer in answers} == {302}
    reloaded = browser.post(NEW, form, follow=True)
    assert "counts once" in reloaded.text
    assert reloaded.context["tenant"].name == "Faber College"
    assert Tenant.objects.count() == 1


def test_two_windows_make_the_first_keys_once():
    browser = signed_up()
    path = f"{created(browser)}/keys/first"
    clicks = [clicks_on(browser, path, form_token=str(one)) for one in range(3)]
    answers = at_once(*clicks)
    assert sorted(len(secrets_on(answer)) for answer in answers) == [0, 0, 3]
    assert ApiKey.objects.count() == 3
    late = browser.send(path, follow=True)
    assert not secrets_on(late) and ApiKey.objects.count() == 3


def test_one_organization_too_many_is_refused_with_a_sentence(settings):
    settings.QUOTA_ORGANIZATIONS = 1
    browser = signed_up()
    created(browser)
    response = browser.send(NEW, name="Faber College", network_id="local")
    assert response.status_code == 409
    page = response.text
    assert "You may have 1 organizations (QUOTA_ORGANIZATIONS)." in page
    assert 'value="Faber College"' in page, "the form is still filled in"
    assert Tenant.objects.count() == 1
