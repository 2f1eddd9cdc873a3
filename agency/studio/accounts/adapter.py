"""The adapter of allauth: permission to sign up, keys of rate limits, and mail."""

from types import SimpleNamespace
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context as current
from allauth.core.exceptions import ImmediateHttpResponse
from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest

from agency.core.callers import client_address
from agency.studio.accounts.rate_limits import rate_limit_response
from agency.studio.invitations import invitation_of

SITE = SimpleNamespace(name="Agency", domain=settings.PUBLIC_URL)


class AccountAdapter(DefaultAccountAdapter):
    def get_client_ip(self, request: HttpRequest) -> str:
        """The key of allauth's rates by `ip`."""
        return client_address(request.META)

    def _get_login_attempts_cache_key(
        self, request: HttpRequest, **credentials: Any
    ) -> str:
        """The key for the login_failed rates by `key`: IP address and account.

        allauth uses Host and account. With these, a stranger could lock out the owner,
        and could get more attempts by using another one of ALLOWED_HOSTS.
        """
        account = credentials.get("email", credentials.get("username", "")).lower()
        return f"{client_address(request.META)} {account}"

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Respond 429 instead of allauth's 200 with an error in the form."""
        try:
            super().pre_authenticate(request, **credentials)
        except ValidationError:
            key = self._get_login_attempts_cache_key(request, **credentials)
            answer = rate_limit_response(request, "login_failed", key)
            raise ImmediateHttpResponse(answer) from None

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return settings.STUDIO_SIGN_UP or invitation_of(request) is not None

    def format_email_subject(self, subject: str) -> str:
        return f"{SITE.name}: {subject}"

    def send_mail(
        self, template_prefix: str, email: str, context: dict[str, Any]
    ) -> None:
        """Send a mail whose links begin with PUBLIC_URL, whatever the Host is."""
        asked = current.request.build_absolute_uri("/")
        links = {
            name: f"{settings.PUBLIC_URL}/{value.removeprefix(asked)}"
            for name, value in context.items()
            if isinstance(value, str) and value.startswith(asked)
        }
        super().send_mail(
            template_prefix, email, context | links | {"current_site": SITE}
        )
