"""How people sign up, and what mail to them says."""

from collections.abc import Callable
from functools import wraps
from types import SimpleNamespace
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core import context as current
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

SITE = SimpleNamespace(name="Agency", domain=settings.PUBLIC_URL)


def needs_mail(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Without EMAIL_URL the page says that mail is not set up; nothing is done or promised."""

    @wraps(view)
    def page(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        if settings.EMAIL_URL:
            return view(request, *arguments, **named)
        return render(request, "account/mail_not_set_up.html")

    return page


class AccountAdapter(DefaultAccountAdapter):
    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return settings.STUDIO_SIGN_UP

    def format_email_subject(self, subject: str) -> str:
        return f"{SITE.name}: {subject}"

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """Links begin with PUBLIC_URL, whatever host the request named."""
        asked = current.request.build_absolute_uri("/")
        links = {
            name: f"{settings.PUBLIC_URL}/{value.removeprefix(asked)}"
            for name, value in context.items()
            if isinstance(value, str) and value.startswith(asked)
        }
        super().send_mail(template_prefix, email, context | links | {"current_site": SITE})
