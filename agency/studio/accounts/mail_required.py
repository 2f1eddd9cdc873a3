"""Pages of allauth that send mail, when no mail is set up."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def require_mail(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Decorator: without EMAIL_URL, show a page that says that mail is not set up."""

    @wraps(view)
    def page(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        if settings.EMAIL_URL:
            return view(request, *arguments, **named)
        return render(request, "account/mail_not_set_up.html")

    return page
