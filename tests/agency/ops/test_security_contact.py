"""Who finds a weakness reads whom to tell, if the operator has said so."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

PAGE = "/.well-known/security.txt"
CONTACTS = ["mailto:security@agency.example", "https://agency.example/report"]


def test_the_contacts_of_the_operator_are_served(settings):
    settings.SECURITY_CONTACT = CONTACTS
    answer = Client().get(PAGE)
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    *contacts, expires, canonical = answer.text.splitlines()
    assert contacts == [f"Contact: {one}" for one in CONTACTS]
    end = datetime.fromisoformat(expires.removeprefix("Expires: "))
    assert timedelta(days=30) < end - datetime.now(UTC) < timedelta(days=365)
    assert canonical == f"Canonical: {settings.PUBLIC_URL}{PAGE}"
    assert Client().post(PAGE).status_code == 405


@pytest.mark.django_db
def test_without_a_contact_there_is_no_such_page(settings):
    settings.SECURITY_CONTACT = []
    assert Client().get(PAGE).status_code == 404


@pytest.mark.slow
@pytest.mark.parametrize(
    "given",
    [
        "security@agency.example",
        "http://agency.example",
        "mailto:a@b.example\nContact: x",
    ],
)
def test_what_is_no_contact_is_refused_at_the_start(given):
    command = [sys.executable, "-c", "import agency.settings"]
    environment = os.environ | {"SECURITY_CONTACT": given}
    run = subprocess.run(
        command, env=environment, text=True, capture_output=True, check=False
    )
    assert run.returncode and "SECURITY_CONTACT takes" in run.stderr
