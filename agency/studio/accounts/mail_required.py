"""Pages of allauth that send mail, when no mail is set up."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

Given = ParamSpec("Given")


def require_mail(
    view: Callable[Concatenate[HttpRequest, Given], HttpResponse],
) -> Callable[Concatenate[HttpRequest, Given], HttpResponse]:
    """Decorator: without EMAIL_URL, show a page that says that mail is not set up."""

    @wraps(view)
    def page(
        request: HttpRequest, *arguments: Given.args, **named: Given.kwargs
    ) -> HttpResponse:
        if settings.EMAIL_URL:
            return view(request, *arguments, **named)
        return render(request, "account/mail_not_set_up.html")

    return page
