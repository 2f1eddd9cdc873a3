"""Sign-up, sign-in and password reset do not reveal registered addresses."""

import re

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth import hashers
from django.contrib.auth.models import User
from django.core import mail
from django.core.cache import cache

from tests.support.pages import Browser

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse battery"
LINK = re.compile(r"/accounts/confirm-email/\S+")


@pytest.fixture(params=["with mail", "without mail"])
def mode(request, settings):
    is_set = request.param == "with mail"
    settings.EMAIL_URL = "smtp://mail.example" if is_set else ""
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory" if is_set else "none"
    return request.param


@pytest.fixture
def with_mail(settings):
    settings.EMAIL_URL = "smtp://mail.example"
    settings.ACCOUNT_EMAIL_VERIFICATION = "mandatory"


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
def registered(fay):
    EmailAddress.objects.create(user=fay, email=fay.email, verified=True, primary=True)
    return fay.email


def answer(browser, path, **fields):
    """What a stranger sees: status, location, page without tokens, cookie names."""
    cache.clear()
    response = browser.post(path, fields)
    page = re.sub(r'value="[^"]{36,}"', "", response.content.decode())
    for email in fields.values():
        page = page.replace(email, "")
    return (
        response.status_code,
        response.get("Location"),
        page,
        sorted(response.cookies),
    )


def signs_up(browser, email, password=PASSWORD):
    return answer(
        browser,
        "/accounts/signup/",
        email=email,
        password1=password,
    )


def test_sign_up_answers_the_same(mode, registered, hashed):
    answers, costs = [], []
    for email in (registered, registered.upper(), "new@faber.example"):
        hashed.clear()
        answers.append(signs_up(Browser(), email))
        costs.append(len(hashed))
    assert answers[0] == answers[1] == answers[2]
    assert answers[0][0] == 302
    assert costs == [1, 1, 1]


def test_a_weak_password_is_told_first(mode, registered):
    known, new = (
        signs_up(Browser(), one, "short") for one in (registered, "x@faber.example")
    )
    assert known == new and known[0] == 200


def test_a_second_account_of_an_address_reaches_nothing_of_the_first(
    college, registered, settings
):
    settings.EMAIL_URL, settings.ACCOUNT_EMAIL_VERIFICATION = "", "none"
    mallory, fay = Browser(), Browser()
    signs_up(mallory, registered, "another good password")
    assert User.objects.filter(email=registered).count() == 2
    assert mallory.get("/studio/")["Location"] == "/studio/organizations/new"
    assert mallory.get(f"/studio/organizations/{college.tenant.pk}").status_code == 404
    answer(fay, "/accounts/login/", login=registered, password=PASSWORD)
    assert "Faber College" in fay.get("/studio/").content.decode()


def test_without_mail_a_second_account_is_signed_in_to_like_any_other(
    registered, settings
):
    """If addresses were verified once, the first account must not hide the other."""
    settings.EMAIL_URL, settings.ACCOUNT_EMAIL_VERIFICATION = "", "none"
    answers = []
    for email in (registered, "new@faber.example"):
        signs_up(Browser(), email, "another good password")
        fields = {"login": email, "password": "another good password"}
        answers.append(answer(Browser(), "/accounts/login/", **fields))
    assert answers[0] == answers[1] and answers[0][0] == 302


def test_with_mail_the_verified_account_of_an_address_is_the_one(
    with_mail,
    registered,
):
    other = User.objects.create_user("other", registered, "another good password")
    EmailAddress.objects.create(
        user=other, email=registered, verified=False, primary=True
    )
    browser = Browser()
    answer(
        browser, "/accounts/login/", login=registered, password="another good password"
    )
    assert browser.get("/studio/")["Location"].startswith("/accounts/login/")


def test_with_mail_the_mailbox_is_told_and_no_account_made(with_mail, registered):
    signs_up(Browser(), registered)
    [message] = mail.outbox
    assert message.to == [registered] and "already" in message.body
    assert User.objects.filter(email=registered).count() == 1


def test_with_mail_one_signs_in_after_following_the_link(with_mail, db):
    browser = Browser()
    assert signs_up(browser, "new@faber.example")[1] == "/accounts/confirm-email/"
    page = browser.get("/accounts/confirm-email/").content.decode()
    assert "Look into your mail" in page
    assert browser.get("/studio/").status_code == 302
    [message] = mail.outbox
    browser.post(LINK.search(message.body)[0])
    answer(browser, "/accounts/login/", login="new@faber.example", password=PASSWORD)
    assert browser.get("/studio/organizations/new").status_code == 200


def test_password_reset_answers_the_same(with_mail, registered):
    known, new = (
        answer(Browser(), "/accounts/password/reset/", email=email)
        for email in (registered, "new@faber.example")
    )
    assert known == new and known[0] == 302
    assert [one.to for one in mail.outbox] == [[registered], ["new@faber.example"]]


def test_sign_in_answers_the_same(mode, registered):
    known, new = (
        answer(Browser(), "/accounts/login/", login=email, password="wrong guess")
        for email in (registered, "new@faber.example")
    )
    assert known == new and known[0] == 200


def test_adding_an_address_answers_the_same(with_mail, registered):
    answers = []
    for email in (registered, "new@faber.example"):
        sam = User.objects.create_user(
            email,
            f"sam-{len(answers)}@x.example",
            PASSWORD,
        )
        EmailAddress.objects.create(
            user=sam, email=sam.email, verified=True, primary=True
        )
        browser = Browser()
        browser.force_login(sam)
        answers.append(answer(browser, "/accounts/email/", email=email, action_add=""))
    assert answers[0] == answers[1] and answers[0][0] == 302
