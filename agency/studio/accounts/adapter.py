"""The adapter of allauth: permission to sign up, keys of rate limits, and mail."""

import logging
from smtplib import SMTPException
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.models import EmailAddress
from allauth.core import context as current
from allauth.core.exceptions import ImmediateHttpResponse
from django.conf import settings
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.urls import reverse

from agency.mails import texts
from agency.mails.languages import language_for
from agency.mails.sending import Change, send_mail
from agency.studio.accounts.rate_limits import rate_limit_response
from agency.studio.invitations import invitation_of
from agency.studio.pages import list_memberships
from core.net.callers import client_address

logger = logging.getLogger(__name__)
# The name of the link in the context of each mail that has one.
LINKS = {
    "email_confirmation": "activate_url",
    "email_confirmation_signup": "activate_url",
    "password_reset_key": "password_reset_url",
    "unknown_account": "signup_url",
    "account_already_exists": "password_reset_url",
}


class AccountAdapter(DefaultAccountAdapter):
    def get_client_ip(self, request: HttpRequest) -> str:
        """The key of allauth's rates by `ip`."""
        return client_address(request.META)

    def _get_login_attempts_cache_key(
        self, request: HttpRequest, **credentials: str
    ) -> str:
        """The key for the login_failed rates by `key`: IP address and account.

        allauth uses Host and account. With these, a stranger could lock out the owner,
        and could get more attempts by using another one of ALLOWED_HOSTS.
        """
        account = credentials.get("email", credentials.get("username", "")).lower()
        return f"{client_address(request.META)} {account}"

    def pre_authenticate(self, request: HttpRequest, **credentials: str) -> None:
        """Respond 429 instead of allauth's 200 with an error in the form."""
        try:
            super().pre_authenticate(request, **credentials)
        except ValidationError:
            key = self._get_login_attempts_cache_key(request, **credentials)
            answer = rate_limit_response(request, "login_failed", key)
            raise ImmediateHttpResponse(answer) from None

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Who works for one organization only begins at its overview."""
        found = list_memberships(request)[:2]
        if len(found) == 1:
            return reverse("studio:organization", args=[found[0].tenant_id])
        url: str = super().get_login_redirect_url(request)
        return url

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return settings.STUDIO_SIGN_UP or invitation_of(request) is not None

    def send_notification_mail(
        self,
        template_prefix: str,
        user: User,
        context: dict[str, Any] | None = None,
        email: str | None = None,
    ) -> None:
        """Send a mail about a change, which stands even if no mail can be sent."""
        given = (context or {}) | {"user": user}
        try:
            super().send_notification_mail(template_prefix, user, given, email)
        except (OSError, SMTPException) as error:
            logger.warning("a notice could not be mailed: %s", type(error).__name__)

    def send_mail(
        self, template_prefix: str, email: str, context: dict[str, Any]
    ) -> None:
        """Send one of our mails instead of allauth's template of that name.

        In the language of the account with this address, else of the request. A notice
        of a change leads to the person's sessions; any other link is allauth's, with
        PUBLIC_URL at its beginning. While sign-up is closed, somebody without an
        account is led to sign in. Raises OSError or SMTPException.
        """
        request = current.request
        name = template_prefix.rpartition("/")[2]
        user = context.get("user") or owner_of(email)
        language = language_for(user, request)
        if name in texts.NOTICES:
            link = settings.PUBLIC_URL + reverse("studio:sessions")
            change = Change(
                moment=context["timestamp"],
                address=context["ip"].partition("/")[0],
                user_agent=context["user_agent"],
            )
            mail = texts.NOTICES[name]
        elif name == "unknown_account" and not self.is_open_for_signup(request):
            link = settings.PUBLIC_URL + reverse("account_login")
            change = None
            mail = texts.UNKNOWN_AND_CLOSED
        else:
            link = link_in(context[LINKS[name]])
            change = None
            mail = texts.REQUESTED[name]
        send_mail(
            mail, email, language=language, link=link, values=context, change=change
        )


def link_in(given: str) -> str:
    """The link with PUBLIC_URL at its beginning, whatever the Host header is."""
    asked = current.request.build_absolute_uri("/")
    return f"{settings.PUBLIC_URL}/{given.removeprefix(asked)}"


def owner_of(email: str) -> User | None:
    """The account with this confirmed address, or None."""
    rows = EmailAddress.objects.filter(email__iexact=email, verified=True)
    found = rows.select_related("user").first()
    return found.user if found else None
