"""TLS and mail settings of production, and the findings of `check --deploy`."""

import json
import os
import subprocess
import sys

import pytest
from django.test import Client

from agency.ops import checks

pytestmark = pytest.mark.slow
PUBLIC = "https://agency.example"
PROGRAM = """
import json, agency.settings as made
print(json.dumps({name: value for name, value in vars(made).items() if name in (
    "SECURE_SSL_REDIRECT", "SECURE_SSL_HOST", "SECURE_HSTS_SECONDS", "EMAIL_BACKEND",
    "ACCOUNT_EMAIL_VERIFICATION", "SECURE_PROXY_SSL_HEADER")}))
"""


def settings_of(**given):
    """The settings for these variables, without other proxy and mail variables."""
    environment = {
        name: text for name, text in os.environ.items() if name != "EMAIL_URL"
    } | given
    command = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(ran.stdout)


@pytest.fixture
def behind_a_proxy(settings):
    made = settings_of(PUBLIC_URL=PUBLIC, TRUST_PROXY="1")
    for name in ("SECURE_SSL_REDIRECT", "SECURE_SSL_HOST", "SECURE_HSTS_SECONDS"):
        setattr(settings, name, made[name])
    settings.SECURE_PROXY_SSL_HEADER = tuple(made["SECURE_PROXY_SSL_HEADER"])
    settings.ALLOWED_HOSTS = ["agency.example", "10.0.0.7"]


def get(path, host="agency.example", **headers):
    return Client().get(path, headers={"host": host} | headers)


@pytest.mark.parametrize("headers", [{}, {"x-forwarded-proto": "http"}])
def test_http_is_led_to_the_public_address(behind_a_proxy, headers):
    answer = get("/accounts/login/?next=/studio/", host="10.0.0.7", **headers)
    assert answer.status_code == 301
    assert answer["Location"] == f"{PUBLIC}/accounts/login/?next=/studio/"


def test_https_is_served_and_told_to_stay_so(behind_a_proxy):
    answer = get("/credentials", **{"x-forwarded-proto": "https"})
    assert answer.status_code == 401
    assert answer["Strict-Transport-Security"].startswith("max-age=31536000")


@pytest.mark.parametrize(
    "path",
    ["/health", "/custodian/v1/health", "/custodian/health", "/agency/v1/health"],
)
def test_who_asks_for_health_needs_no_tls(behind_a_proxy, path):
    assert get(path).status_code == 200


def test_readiness_and_metrics_need_no_tls(behind_a_proxy, db, settings):
    settings.METRICS_TOKEN = "for-prometheus-only"
    assert get("/health/ready").status_code == 200
    assert get("/metrics").status_code == 401


@pytest.mark.parametrize(
    "path", ["/didcomm/health", "/api/wallets/health", "/metrics/x"]
)
def test_nothing_else_goes_without_tls(behind_a_proxy, path):
    assert get(path).status_code == 301


def test_without_a_trusted_proxy_nothing_is_redirected():
    """A proxy with TLS that is not trusted would be sent in a circle."""
    assert settings_of(PUBLIC_URL=PUBLIC)["SECURE_SSL_REDIRECT"] is False
    assert settings_of(PUBLIC_URL="http://x.example", TRUST_PROXY="1")[
        "SECURE_SSL_REDIRECT"
    ] is (False)


@pytest.mark.parametrize(
    ("public_url", "trusted", "check_ids"),
    [
        (PUBLIC, False, ["agency.W011"]),
        (PUBLIC, True, []),
        ("http://x.example", False, []),
    ],
)
def test_a_proxy_that_is_not_trusted_is_warned_of(
    settings, public_url, trusted, check_ids
):
    settings.SECURE, settings.TRUST_PROXY = public_url.startswith("https"), trusted
    assert [found.id for found in checks.check_tls_proxy()] == check_ids


def test_a_server_without_mail_is_warned_of(settings):
    assert checks.check_mail() == []
    settings.EMAIL_URL = ""
    [warning] = checks.check_mail()
    assert warning.id == "agency.W010" and "smtp://" in warning.hint


def test_check_deploy_says_both():
    environment = os.environ | {"EMAIL_URL": "", "PUBLIC_URL": PUBLIC}
    command = [sys.executable, "manage.py", "check", "--deploy"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "(agency.W010)" in ran.stderr and "(agency.W011)" in ran.stderr


def test_without_mail_none_is_printed():
    assert (
        settings_of()["EMAIL_BACKEND"] == "django.core.mail.backends.dummy.EmailBackend"
    )
    console = settings_of(EMAIL_URL="consolemail://")["EMAIL_BACKEND"]
    assert console == "django.core.mail.backends.console.EmailBackend"


def test_without_mail_nobody_must_confirm_an_address():
    assert settings_of()["ACCOUNT_EMAIL_VERIFICATION"] == "none"
