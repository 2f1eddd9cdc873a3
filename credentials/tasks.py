"""What credentials need done beside the calls. No arguments: the work is in the rows."""

import logging
from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from agency.errors import AgencyError
from credentials.models import Credential, CredentialDefinition
from credentials.publications import Publication, attempt
from credentials.revocation import RevocationRegistry

logger = logging.getLogger(__name__)
LEFT_BEHIND = timedelta(seconds=60)


@shared_task
def finish_what_was_left_behind():
    """Automatic issues and publications of revocations whose process ended in the middle."""
    for credential in left_behind(state=Credential.State.REQUESTED, automatic_issuance=True):
        finish(credential, credential.issue_automatically)
    for credential in left_behind(state=Credential.State.REVOKED, revocation_published_at=None):
        finish(credential, credential.publish_revocation)


def left_behind(**where):
    rows = Credential.objects.select_related("connection__my_key", "wallet", "tenant__network")
    before = timezone.now() - LEFT_BEHIND
    left = rows.filter(role=Credential.Role.ISSUER, updated_at__lt=before, **where)
    return left.order_by("updated_at")[:100]


def finish(credential, step):
    try:
        step()
    except AgencyError as error:
        logger.warning("credential %s is still left behind: %s", credential.pk, error.code)


@shared_task
def build_registries():
    """One for each definition whose registries are nearly full, one after the other."""
    definitions = CredentialDefinition.objects.filter(deleted_at=None, supports_revocation=True)
    for definition in definitions.select_related("tenant__network"):
        if not RevocationRegistry.has_room(definition):
            job = RevocationRegistry.begin_next(definition, settings.REVOCATION_REGISTRY_SIZE)
            job, is_ours = job or (None, False)
            if is_ours:
                attempt(job)


@shared_task
def publish_on_ledgers():
    """What calls left undone, job by job, until none is due."""
    while jobs := Publication.claim(1):
        attempt(jobs[0])
