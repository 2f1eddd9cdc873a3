"""Which language the mails to a person have."""

from django.contrib.auth.models import User
from django.http import HttpRequest

from agency.holders.links.languages import choose_language
from agency.mails.models import MailLanguage


def chosen_language(user: User) -> str:
    """What the person chose, or ""."""
    rows = MailLanguage.objects.filter(user=user).values_list("language", flat=True)
    return rows.first() or ""


def language_for(user: User | None, request: HttpRequest) -> str:
    """The person's language; without a choice, the one of the browser.

    user: None for an address without an account.
    """
    return (user and chosen_language(user)) or choose_language(request)


def choose_mail_language(user: User, language: str) -> None:
    MailLanguage.objects.update_or_create(user=user, defaults={"language": language})
