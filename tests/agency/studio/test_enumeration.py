"""Sign-up, sign-in and password reset do not reveal registered addresses."""

import re

import pytest
from django.contrib.auth import hashers
from django.contrib.auth.models import User
from django.core import mail
from django.core.cache import cache

from tests.agency.studio.conftest import found_college
from tests.factories import EmailAddressFactory
from tests.support.pages import Browser

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
OTHER = "another good password"
NEW = "new@faber.example"
LINK = re.compile(r"/accounts/confirm-email/\S+")


@pytest.fixture(params=["with mail", "without mail"])
def mode(request, settings):
    set_mail(settings, request.param == "with mail")


def set_mail(settings, is_set):
    settings.EMAIL_URL = "smtp://mail.example" if is_set else ""
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory" if is_set else "none"


@pytest.fixture
def with_mail(settings):
    set_mail(settings, True)


@pytest.fixture
def passwords_are_hashed_fast(monkeypatch):
    """By the product's hasher, in less memory."""
    monkeypatch.setattr(hashers.Argon2PasswordHasher, "memory_cost", 64)


@pytest.fixture
def hashed(monkeypatch):
    """How many passwords were hashed, which takes far longer than all else."""
    times, encode = [], hashers.Argon2PasswordHasher.encode

    def counted(self, password, salt):
        times.append(password)
        return encode(self, password, salt)

    monkeypatch.setattr(hashers.Argon2PasswordHasher, "encode", counted)
    return times


@pytest.fixture
def faber(db):
    """Not that of other tests: Fay's password is hashed by the product's hasher."""
    return found_college()


@pytest.fixture
def registered(fay):
    return fay.email


def answer(browser, path, **fields):
    """What a stranger sees: status, location, page without tokens, cookie names."""
    cache.clear()
    response = browser.post(path, fields)
    page = re.sub(r'value="[^"]{36,}"', "", response.text)
    for email in fields.values():
        page = page.replace(email, "")
    cookies = sorted(response.cookies)
    return response.status_code, response.get("Location"), page, cookies


def signs_up(browser, email, password=PASSWORD):
    return answer(browser, "/accounts/signup/", email=email, password1=password)


def test_sign_up_answers_the_same(mode, registered, hashed):
    answers, costs = [], []
    for email in (registered, registered.upper(), NEW):
        hashed.clear()
        answers.append(signs_up(Browser(), email))
        costs.append(len(hashed))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0] == 302
    assert costs == [1, 1, 1]
    known, new = (
        signs_up(Browser(), one, "short") for one in (registered, "x@faber.example")
    )
    assert known == new and known[0] == 200, "a weak password is told first"


def test_a_second_account_reaches_nothing_of_the_first(college, registered, settings):
    set_mail(settings, False)
    mallory, fay = Browser(), Browser()
    signs_up(mallory, registered, OTHER)
    assert User.objects.filter(email=registered).count() == 2
    assert mallory.get("/studio/")["Location"] == "/studio/organizations/new"
    assert mallory.get(f"/studio/organizations/{college.tenant.pk}").status_code == 404
    answer(fay, "/accounts/login/", login=registered, password=PASSWORD)
    assert "Faber College" in fay.get("/studio/?all").text


def test_without_mail_a_second_account_is_like_any_other(registered, settings):
    """If addresses were verified once, the first account must not hide the other."""
    set_mail(settings, False)
    answers = []
    for email in (registered, NEW):
        signs_up(Browser(), email, OTHER)
        fields = {"login": email, "password": OTHER}
        answers.append(answer(Browser(), "/accounts/login/", **fields))
    assert answers[0] == answers[1] and answers[0][0] == 302


def test_with_mail_the_verified_account_is_the_one(with_mail, registered):
    other = User.objects.create_user("other", registered, OTHER)
    EmailAddressFactory(user=other, verified=False)
    browser = Browser()
    answer(browser, "/accounts/login/", login=registered, password=OTHER)
    assert browser.get("/studio/")["Location"].startswith("/accounts/login/")


def test_with_mail_the_mailbox_is_told_and_no_account_made(with_mail, registered):
    signs_up(Browser(), registered)
    [message] = mail.outbox
    assert message.to == [registered] and "already" in message.body
    assert User.objects.filter(email=registered).count() == 1


def test_with_mail_one_signs_in_after_following_the_link(with_mail, db):
    browser = Browser()
    assert signs_up(browser, NEW)[1] == "/accounts/confirm-email/"
    page = browser.get("/accounts/confirm-email/").text
    assert "Look into your mail" in page
    assert browser.get("/studio/").status_code == 302
    [message] = mail.outbox
    browser.post(LINK.search(message.body)[0])
    answer(browser, "/accounts/login/", login=NEW, password=PASSWORD)
    assert browser.get("/studio/organizations/new").status_code == 200


def test_password_reset_answers_the_same(with_mail, registered):
    path, both = "/accounts/password/reset/", (registered, NEW)
    known, new = (answer(Browser(), path, email=email) for email in both)
    assert known == new and known[0] == 302
    assert [one.to for one in mail.outbox] == [[registered], [NEW]]


def test_sign_in_answers_the_same(mode, registered):
    path, wrong = "/accounts/login/", {"password": "wrong guess"}
    both = (registered, NEW)
    known, new = (answer(Browser(), path, login=email, **wrong) for email in both)
    assert known == new and known[0] == 200


def test_adding_an_address_answers_the_same(with_mail, registered):
    answers = []
    for email in (registered, NEW):
        browser = Browser()
        browser.force_login(EmailAddressFactory().user)
        answers.append(answer(browser, "/accounts/email/", email=email, action_add=""))
    assert answers[0] == answers[1] and answers[0][0] == 302
