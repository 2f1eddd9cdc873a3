"""Second factors: set up, asked for, required of staff and of members."""

import time

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import format_hotp_value, hotp_value
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from tenants import vault
from tenants.models import AuditEntry
from tests.agency.studio.conftest import browser_of, person
from tests.factories import AuthenticatorFactory, UserFactory
from tests.support.pages import Browser

PASSWORD = "correct horse battery"
SETUP = "/accounts/2fa/"


def sign_in(name="kim"):
    browser = Browser()
    form = {"login": f"{name}@faber.example", "password": PASSWORD}
    return browser, browser.post("/accounts/login/", form)


def confirm(browser):
    """Give the password again, which changes of factors need."""
    browser.post("/accounts/reauthenticate/", {"password": PASSWORD})


def code_of(secret, steps=0):
    return format_hotp_value(hotp_value(secret, int(time.time()) // 30 + steps))


@pytest.fixture
def kim(db):
    return person("kim")


@pytest.fixture
def secret(kim):
    """Kim sets up an app. Returns its secret."""
    browser, _ = sign_in()
    confirm(browser)
    page = browser.get("/accounts/2fa/totp/activate/").text
    secret = page.split("Secret: <code")[1].split(">")[1].split("<")[0]
    answer = browser.post("/accounts/2fa/totp/activate/", {"code": code_of(secret)})
    assert answer.status_code == 302
    return secret


def test_an_app_is_asked_for_after_the_password(secret):
    browser, answer = sign_in()
    assert answer["Location"] == "/accounts/2fa/authenticate/"
    assert browser.get("/studio/").status_code == 302  # not signed in yet
    page = browser.get(answer["Location"]).text
    assert "authenticator app" in page and "recovery codes" in page
    assert "passkey" not in page
    wrong = browser.post(answer["Location"], {"code": "000000"})
    assert "Incorrect code" in wrong.text
    assert browser.get("/studio/")["Location"].startswith("/accounts/login/")
    right = browser.post("/accounts/2fa/authenticate/", {"code": code_of(secret, 1)})
    assert right["Location"] == "/studio/"
    assert browser.get("/studio/")["Location"] == "/studio/organizations/new"


def test_the_secret_and_the_codes_are_sealed_and_stay(kim, secret):
    totp = Authenticator.objects.get(user=kim, type="totp")
    codes = Authenticator.objects.get(user=kim, type="recovery_codes")
    assert secret not in str(totp.data)
    assert vault.unseal_text(totp.data["secret"], "second factor") == secret
    assert vault.unseal_text(codes.data["seed"], "second factor")
    assert totp.wrap().validate_code(code_of(secret, 1))
    # A session that somebody left open is not enough to change them.
    answer = browser_of(kim).post("/accounts/2fa/totp/deactivate/")
    assert "reauthenticate" in answer["Location"]
    assert Authenticator.objects.filter(user=kim, type="totp").exists()


def test_a_recovery_code_signs_in_once(kim, secret):
    codes = Authenticator.objects.get(user=kim, type="recovery_codes").wrap()
    code = codes.get_unused_codes()[0]
    browser, _ = sign_in()
    answer = browser.post("/accounts/2fa/authenticate/", {"code": code})
    assert answer["Location"] == "/studio/"
    again, _ = sign_in()
    refused = again.post("/accounts/2fa/authenticate/", {"code": code})
    assert "Incorrect code" in refused.text


@pytest.mark.django_db(transaction=True)
def test_factors_are_logged(transactional_db, kim, secret):
    browser, _ = sign_in()
    browser.post("/accounts/2fa/authenticate/", {"code": code_of(secret, 1)})
    confirm(browser)
    browser.post("/accounts/2fa/totp/deactivate/")
    found = AuditEntry.objects.filter(object_id=str(kim.pk))
    done = {"second_factor_added", "recovery_codes_made", "second_factor_removed"}
    assert {entry.action for entry in found} >= {f"person.{one}" for one in done}
    assert secret not in str(list(found.values()))


def test_staff_open_the_admin_with_a_second_factor_only(db, settings):
    sue = UserFactory(is_staff=True)
    browser = browser_of(sue)
    assert browser.get("/admin/").status_code == 302
    AuthenticatorFactory(user=sue, type="recovery_codes")
    assert browser.get("/admin/").status_code == 302
    Authenticator.objects.all().delete()
    setup = browser.get("/admin/", follow=True)
    assert setup.request["PATH_INFO"] == SETUP
    assert "The admin requires a second factor" in setup.text
    assert browser.get("/admin/tenants/tenant/").status_code == 302
    AuthenticatorFactory(user=sue)
    assert browser.get("/admin/").status_code == 200
    Authenticator.objects.all().delete()
    settings.STAFF_SECOND_FACTOR = False
    assert browser.get("/admin/").status_code == 200
    # It makes nobody staff.
    User.objects.update(is_staff=False)
    AuthenticatorFactory(user=sue)
    answer = browser.get("/admin/", follow=True)
    assert answer.request["PATH_INFO"] != "/admin/"


def test_an_organization_requires_it_of_members(browser, viewer, college, url, fay):
    answer = browser.post(f"{url}/second-factor", {"required": "yes"}, follow=True)
    assert "yourself before you require it" in answer.text
    assert viewer.get(url).status_code == 200
    AuthenticatorFactory(user=fay)
    browser.post(f"{url}/second-factor", {"required": "yes"})
    assert browser.get(url).status_code == 200
    for path in (url, f"{url}/events", f"{url}/members", f"{url}/leave"):
        answer = viewer.get(path, follow=True)
        assert answer.request["PATH_INFO"] == SETUP
        assert "Faber College requires a second factor" in answer.text
    assert viewer.post(f"{url}/leave").status_code == 302
    assert college.tenant.memberships.count() == 2
    browser.post(f"{url}/second-factor", {"required": "no"})
    assert viewer.get(url).status_code == 200
    entries = AuditEntry.objects.filter(tenant=college.tenant).order_by("pk")
    changes = [entry.details["requires_second_factor"] for entry in entries]
    assert changes == [["False", "True"], ["True", "False"]]


def test_an_operator_helps_somebody_who_lost_everything(kim, secret, capsys):
    call_command("reset_second_factor", "KIM@faber.example")
    assert not Authenticator.objects.exists()
    assert sign_in()[1]["Location"] == "/studio/"
    entry = AuditEntry.objects.get(action="person.second_factor_removed")
    assert (entry.actor_kind, entry.object_id) == ("command", str(kim.pk))
    for email in ("kim@faber.example", "nobody@faber.example"):
        with pytest.raises(CommandError):
            call_command("reset_second_factor", email)


def test_too_many_tries_with_passkeys_are_refused_with_the_time(db):
    browser = Browser()
    answers = [browser.post("/accounts/2fa/webauthn/login/") for _ in range(11)]
    assert answers[-1].status_code == 429
    assert 0 < int(answers[-1]["Retry-After"]) <= 60


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.needs("chromium-headless-shell")
def test_a_passkey_is_added_and_signs_in(kim, page, settings):
    page.base = settings.PUBLIC_URL = page.base.replace("127.0.0.1", "localhost")
    browser, _ = sign_in()
    confirm(browser)
    page.call("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "internal",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    page.call("WebAuthn.addVirtualAuthenticator", options=options)
    page.sign_in(browser)
    page.open(f"{settings.PUBLIC_URL}/accounts/2fa/webauthn/add/")
    page.evaluate("document.getElementById('id_passwordless').checked = true")
    page.evaluate("document.getElementById('mfa_webauthn_add').click()")
    page.wait_for("!location.pathname.endsWith('/add/')")
    page.open(f"{settings.PUBLIC_URL}/accounts/2fa/webauthn/")
    assert "Passkey" in page.evaluate("document.body.innerText")
    assert Authenticator.objects.filter(user=kim, type="webauthn").count() == 1
    page.tab.context.clear_cookies()
    page.open(f"{settings.PUBLIC_URL}/accounts/login/")
    page.evaluate("document.getElementById('passkey_login').click()")
    page.wait_for("location.pathname.startsWith('/studio/')")
    page.tab.context.clear_cookies()
    page.open(f"{settings.PUBLIC_URL}/accounts/login/")
    page.evaluate(f"""(({{login, password}}) => {{
      login.value = "{kim.email}"; password.value = "{PASSWORD}";
      login.form.requestSubmit(); }})(
        document.querySelector("form[action='/accounts/login/']").elements)""")
    page.wait_for(
        "location.pathname === '/accounts/2fa/authenticate/'"
        " && document.readyState === 'complete'"
    )
    page.evaluate("document.getElementById('mfa_webauthn_authenticate').click()")
    page.wait_for("location.pathname.startsWith('/studio/')")
