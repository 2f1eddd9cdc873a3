"""What credentials need done beside the calls. No arguments: the work is in the rows."""

import logging
from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from agency.errors import AgencyError
from credentials.models import Credential, CredentialDefinition
from credentials.revocation import RevocationRegistry

logger = logging.getLogger(__name__)
LEFT_BEHIND = timedelta(seconds=60)


@shared_task
def issue_what_was_left_behind():
    """Automatic issues whose process ended between the holder's request and the issue."""
    rows = Credential.objects.select_related("connection__my_key", "wallet", "tenant__network")
    left = rows.filter(
        role=Credential.Role.ISSUER,
        state=Credential.State.REQUESTED,
        automatic_issuance=True,
        updated_at__lt=timezone.now() - LEFT_BEHIND,
    )
    for credential in left.order_by("updated_at")[:100]:
        try:
            credential.issue_automatically()
        except AgencyError as error:
            logger.warning("credential %s was not issued: %s", credential.pk, error.code)


@shared_task
def build_registries():
    """One for each definition whose registries are nearly full, one after the other."""
    definitions = CredentialDefinition.objects.filter(deleted_at=None, supports_revocation=True)
    for definition in definitions.select_related("tenant__network"):
        if not RevocationRegistry.has_room(definition):
            RevocationRegistry.build_next(definition, settings.REVOCATION_REGISTRY_SIZE)
