"""The page on which a person chooses the language of mails."""

from typing import Any

from allauth.account.signals import user_signed_up
from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from agency.holders.links.languages import choose_language
from agency.mails.languages import choose_mail_language, language_for
from agency.studio.pages import PersonRequest, person_page
from tenants.branding import LANGUAGES


class LanguageForm(forms.Form):
    language = forms.ChoiceField(
        label="Language", choices=list(LANGUAGES.items()), help_text="Of mails to you."
    )


def connect_signals() -> None:
    """Note the browser's language at sign-up. Called once, when the process starts."""
    user_signed_up.connect(note_language, dispatch_uid="note_language")


def note_language(*, request: HttpRequest, user: User, **_: Any) -> None:
    choose_mail_language(user, choose_language(request))


@person_page("GET", "POST")
def show_language(request: PersonRequest) -> HttpResponse:
    initial = {"language": language_for(request.user, request)}
    form = LanguageForm(request.POST or None, initial=initial)
    if form.is_valid():
        choose_mail_language(request.user, form.cleaned_data["language"])
        messages.success(request, "The language is saved.")
        return redirect("studio:language")
    return render(request, "account/language.html", {"form": form})
