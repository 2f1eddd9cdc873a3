"""People whose sessions open the pages that not everybody gets: staff, second factors.

Each function returns a browser that is where the page is reached.
"""

from typing import Any

from allauth.account.forms import default_token_generator
from allauth.account.models import EmailAddress, EmailConfirmationHMAC
from allauth.account.utils import user_pk_to_url_str
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.contrib.auth.models import User
from django.urls import reverse

from tests.agency.admin.conftest import make_staff
from tests.agency.studio.conftest import browser_of, person
from tests.support.pages import Browser

PASSWORD = "correct horse battery"
CREDENTIAL = {"clientExtensionResults": {"credProps": {"rk": True}}}


def signed_in_as_staff() -> Browser:
    """Sees every record and every button."""
    return browser_of(make_staff("sue", is_superuser=True))


def asked_again(user: User) -> Browser:
    """Has given the password a second time, which pages about factors ask for."""
    browser = browser_of(user)
    answer = browser.post("/accounts/reauthenticate/", {"password": PASSWORD})
    assert answer.status_code == 302
    return browser


def make_guarded() -> tuple[User, Any]:
    """Somebody with each kind of factor, and the passkey."""
    user = person("gus")
    TOTP.activate(user, generate_totp_secret())
    RecoveryCodes.activate(user)
    passkey = Authenticator.objects.create(
        user=user, type="webauthn", data={"name": "Laptop", "credential": CREDENTIAL}
    )
    return user, passkey


def half_signed_in() -> Browser:
    """Has given the password, and not the code of the app."""
    user = person("hal")
    TOTP.activate(user, generate_totp_secret())
    browser = Browser()
    form = {"login": user.email, "password": PASSWORD}
    answer = browser.post("/accounts/login/", form)
    assert answer["Location"] == reverse("mfa_authenticate")
    return browser


def resets_password() -> tuple[Browser, dict[str, str]]:
    """Has opened the link of the mail. Also returns the parts of the page's address."""
    user = person("pat")
    parts = {"uidb36": user_pk_to_url_str(user), "key": "set-password"}
    browser = Browser()
    token = default_token_generator.make_token(user)
    browser.get(
        reverse("account_reset_password_from_key", kwargs=parts | {"key": token})
    )
    return browser, parts


def key_of_mail() -> str:
    """The key in the link that confirms an address."""
    user = person("uma")
    address = EmailAddress.objects.create(user=user, email=user.email, primary=True)
    return EmailConfirmationHMAC(address).key
