"""The kinds of webhooks that the original clients register."""

from django.db import models


class Kind(models.TextChoices):
    NOTIFICATION = "Notification"
    DELEGATED_ENDORSER = "DelegatedEndorser"
    ZAPIER = "Zapier"


# Stored, as the clients expect, and never called.
NEVER_CALLED = (Kind.DELEGATED_ENDORSER,)
