"""The language in which a person wants mails, and who wants none, or had one today."""

from django.conf import settings
from django.db import models
from django.utils import timezone


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


class Unsubscribed(models.Model):
    """A mail address to which no organization of this installation sends links.

    digest: keyed, of the address; whoever has the table alone cannot tell whose it is.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.digest[:8]


class AskedAddress(models.Model):
    """That a mail has asked somebody to confirm this address, of whatever wallet.

    digest: as of Unsubscribed.
    """

    digest = models.CharField(max_length=64, primary_key=True)
    asked_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.digest[:8]
