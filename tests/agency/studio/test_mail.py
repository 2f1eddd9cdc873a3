"""Without EMAIL_URL no page promises mail, and none is sent or printed."""

import logging

import pytest
from django.core import mail

from agency.mails import notices


@pytest.fixture
def without_mail(settings):
    settings.EMAIL_URL = ""
    settings.ACCOUNT_EMAIL_VERIFICATION = "none"


def test_a_forgotten_password_is_nobodys_to_send(without_mail, client, fay):
    for answer in (
        client.get("/accounts/password/reset/"),
        client.post("/accounts/password/reset/", {"email": fay.email}),
    ):
        assert "Mail is not set up" in answer.text
    client.force_login(fay)
    assert "Mail is not set up" in client.get("/accounts/email/").text
    assert mail.outbox == []


def test_people_sign_up_nevertheless(without_mail, client, db):
    fields = {"email": "fay@faber.example", "password1": "correct horse battery"}
    answer = client.post("/accounts/signup/", fields)
    assert answer["Location"] == "/studio/"
    assert mail.outbox == []


def test_the_log_tells_that_nobody_was_told(without_mail, caplog):
    with caplog.at_level(logging.WARNING):
        notices.mail_people(None)
    assert "EMAIL_URL is not set" in caplog.text and mail.outbox == []
