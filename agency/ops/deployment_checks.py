"""Warnings of `manage.py check --deploy` about incomplete settings."""

from typing import Any

from django.conf import settings
from django.core import checks


def check_mail(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """agency.W010: no mail can be sent."""
    if settings.EMAIL_URL:
        return []
    return [
        checks.Warning(
            "EMAIL_URL is not set, so no mail is sent: people cannot reset their "
            "passwords, and are not told that a webhook was disabled.",
            hint="Set EMAIL_URL, for example to smtp://user:password@host:port.",
            id="agency.W010",
        )
    ]


def check_tls_proxy(app_configs: Any, **kwargs: Any) -> list[checks.CheckMessage]:
    """agency.W011: https requests look like http."""
    if settings.TRUST_PROXY or not settings.SECURE:
        return []
    return [
        checks.Warning(
            "PUBLIC_URL begins with https, and TRUST_PROXY is not set. Behind a proxy "
            "every request looks like http: answers carry no HSTS, and http is not "
            "redirected to https.",
            hint="Let the proxy set X-Forwarded-Proto, then set TRUST_PROXY=1. "
            "Nothing is wrong if the web server has TLS itself "
            "(GRANIAN_SSL_CERTIFICATE).",
            id="agency.W011",
        )
    ]
