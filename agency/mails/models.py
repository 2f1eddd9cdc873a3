"""The language in which a person wants mails."""

from django.conf import settings
from django.db import models


class MailLanguage(models.Model):
    """Chosen at sign-up by the browser, later in the account."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="mail_language",
    )
    language = models.CharField(max_length=2)  # one of branding.LANGUAGES

    def __str__(self) -> str:
        return self.language
