"""Mails to people: in our words, as text and HTML, in the language of the person."""

import re
from pathlib import Path
from smtplib import SMTPServerDisconnected

import allauth
import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.utils import translation

from agency.mails import texts
from agency.mails.languages import chosen_language
from agency.mails.models import MailLanguage
from agency.studio.accounts.adapter import LINKS
from tenants.branding import LANGUAGES
from tests.agency.studio.conftest import (
    browser,
    browser_of,
    college,
    faber,
    fay,
    person,
    url,
)
from tests.factories import EmailAddressFactory
from tests.support.pages import Browser

__all__ = ["browser", "college", "faber", "fay", "url"]

PASSWORD = "correct horse battery"
NEW = "another horse battery"
NEW_FORM = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
TRANSLATED = [language for language in LANGUAGES if language != "en"]
FIELD = re.compile(r"{\w*}")
# Of allauth, but our settings never send them.
UNSENT = {"login_code", "password_reset_code"}


@pytest.fixture(autouse=True)
def with_mail(settings, db):
    settings.EMAIL_URL = "smtp://mail.example"
    settings.STUDIO_VERIFY_EMAIL = True
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"
    settings.ACCOUNT_EMAIL_NOTIFICATIONS = True
    settings.PUBLIC_URL = "https://agency.example"


@pytest.fixture
def kim():
    """Somebody with a confirmed address."""
    return EmailAddressFactory(user=person("kim")).user


def signs_up(email="new@faber.example", **headers):
    form = {"email": email, "password1": PASSWORD}
    return Browser(headers=headers).post("/accounts/signup/", form)


def parts_of(message):
    """The text and the HTML."""
    [(html, kind)] = message.alternatives
    assert kind == "text/html"
    return message.body, html


def test_the_address_is_confirmed_by_a_mail_in_our_words():
    signs_up()
    [message] = mail.outbox
    assert message.subject == "Agency: Confirm your mail address"
    for part in parts_of(message):
        assert "Somebody, probably you, gave this mail address" in part
        assert "https://agency.example/accounts/confirm-email/" in part
        assert "ignore this mail" in part
        # Nobody chose the user name that allauth makes from the address.
        username = User.objects.get().username
        assert not re.search(rf"\b{username}\b(?!@)", part)


@pytest.mark.parametrize("language", LANGUAGES)
def test_sign_up_remembers_the_language_of_the_browser(language):
    signs_up(accept_language=f"{language}-XX,en;q=0.5")
    user = User.objects.get()
    assert chosen_language(user) == language
    [message] = mail.outbox
    assert message.extra_headers["Content-Language"] == language
    body, html = parts_of(message)
    assert f'<html lang="{language}"' in html
    assert ('dir="rtl"' in html) == (language == "ar")
    with translation.override(language):
        for part in (body, html):
            assert str(texts.CONFIRMATION.text) in part
        assert message.subject == f"Agency: {texts.CONFIRMATION.subject}"
    assert translation.get_language() == "en"


def test_the_persons_language_counts_more_than_the_browsers(kim):
    MailLanguage.objects.create(user=kim, language="fr")
    form = {"email": kim.email}
    Browser(headers={"accept-language": "de"}).post("/accounts/password/reset/", form)
    [message] = mail.outbox
    assert message.subject == "Agency: Choisir un nouveau mot de passe"


def test_a_forgotten_password_names_no_user_name(kim):
    Browser().post("/accounts/password/reset/", {"email": kim.email})
    [message] = mail.outbox
    for part in parts_of(message):
        assert "https://agency.example/accounts/password/reset/key/" in part
        assert "username" not in part.lower()
    [link] = set(re.findall(r"agency.example(/\S+/key/\S+/)", message.body))
    page = Browser().get(link, follow=True).content.decode()
    assert 'name="password1"' in page, "the link works"


def test_an_address_without_an_account_is_told_so():
    form = {"email": "nobody@faber.example"}
    Browser(headers={"accept-language": "es"}).post("/accounts/password/reset/", form)
    [message] = mail.outbox
    assert message.subject == "Agency: Ninguna cuenta tiene esta dirección de correo"
    assert "https://agency.example/accounts/signup/" in message.body


def test_nobody_is_led_to_a_sign_up_that_is_closed(settings):
    settings.STUDIO_SIGN_UP = False
    Browser().post("/accounts/password/reset/", {"email": "nobody@faber.example"})
    [message] = mail.outbox
    for part in parts_of(message):
        assert "No account has it." in part and "create one" not in part
        assert "https://agency.example/accounts/login/" in part


def test_who_signs_up_twice_is_told_in_their_own_language(kim):
    MailLanguage.objects.create(user=kim, language="de")
    signs_up(kim.email, accept_language="ar")
    [message] = mail.outbox
    assert message.subject == "Agency: Sie haben bereits ein Konto"


def test_a_change_of_the_password_is_told_with_its_circumstances(kim):
    desk = Browser(
        headers={"User-Agent": "Mozilla/5.0 (X11; Linux) Firefox/140.0"},
        REMOTE_ADDR="203.0.113.7",
    )
    desk.post("/accounts/login/", {"login": kim.email, "password": PASSWORD})
    desk.post("/accounts/password/change/", NEW_FORM)
    [message] = mail.outbox
    assert message.subject == "Agency: Your password was changed"
    for part in parts_of(message):
        assert "203.0.113.7" in part and "Firefox on Linux" in part
        assert "https://agency.example/accounts/sessions/" in part


def test_a_change_stands_when_no_mail_can_be_sent(kim, monkeypatch):
    def refuse(self):
        raise SMTPServerDisconnected

    desk = browser_of(kim)
    monkeypatch.setattr("django.core.mail.EmailMultiAlternatives.send", refuse)
    assert desk.post("/accounts/password/change/", NEW_FORM).status_code == 302
    kim.refresh_from_db()
    assert kim.check_password(NEW)


def test_the_invitation_has_the_language_of_the_organization(browser, college, url):
    EmailAddressFactory(user=User.objects.get(), email="f@x.example", primary=False)
    college.tenant.default_language = "de"
    college.tenant.save()
    browser.send(f"{url}/members/invite", email="ada@x.example", role="developer")
    [message] = mail.outbox
    assert message.subject == "Agency: Einladung zu Faber College"
    for part in parts_of(message):
        assert "Entwickler" in part and "fay@faber.example" in part
        assert "72 Stunden" in part


def test_the_language_is_chosen_in_the_account(kim):
    desk = browser_of(kim)
    page = desk.get("/accounts/language/").content.decode()
    assert '<option value="en" selected>' in page
    answer = desk.post("/accounts/language/", {"language": "ar"})
    assert answer["Location"] == "/accounts/language/"
    assert chosen_language(kim) == "ar"
    page = desk.get("/accounts/language/").content.decode()
    assert '<option value="ar" selected>' in page
    assert chosen_language(person("sam")) == ""
    page = desk.post("/accounts/language/", {"language": "xx"})
    assert 'id="id_language_error"' in page.content.decode()
    assert chosen_language(kim) == "ar"
    answer = Browser().post("/accounts/language/", {"language": "de"})
    assert answer["Location"].startswith("/accounts/login/")


def test_each_mail_of_allauth_has_our_words():
    folder = Path(allauth.__file__).parent / "templates"
    found = {
        path.name.removesuffix("_subject.txt")
        for app in ("account", "mfa")
        for path in (folder / app / "email").glob("*_subject.txt")
    }
    assert found == UNSENT | set(texts.REQUESTED) | set(texts.NOTICES)
    assert set(LINKS) == set(texts.REQUESTED)


@pytest.mark.parametrize("language", TRANSLATED)
def test_each_text_is_translated_with_its_fields(language):
    mails = [
        texts.INVITATION,
        texts.ANONYMOUS_INVITATION,
        texts.UNKNOWN_AND_CLOSED,
        texts.WEBHOOK_DISABLED,
        *texts.REQUESTED.values(),
        *texts.NOTICES.values(),
    ]
    parts = [part for one in mails for part in vars(one).values()]
    parts += [*texts.ROLES.values(), *texts.WEBHOOK_REASONS.values()]
    for part in parts:
        with translation.override("en"):
            english = str(part)
        with translation.override(language):
            translated = str(part)
        assert translated != english
        assert sorted(FIELD.findall(translated)) == sorted(FIELD.findall(english))
