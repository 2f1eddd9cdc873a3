"""The formats in which credentials are issued."""

from django.db import models


class CredentialFormat(models.TextChoices):
    """As the API names them."""

    ANONCREDS = "anoncreds"
    SD_JWT = "dc+sd-jwt"
