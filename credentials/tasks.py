"""What credentials need done beside the calls. No arguments: the work is in the rows."""

import logging
from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from agency.core.errors import AgencyError
from credentials.models import Credential, CredentialDefinition
from credentials.publications import Publication, attempt
from credentials.revocation import RevocationRegistry

logger = logging.getLogger(__name__)
LEFT_BEHIND = timedelta(seconds=60)
AT_ONCE = 100  # rows of one run


@shared_task
def finish_what_was_left_behind():
    """Automatic issues and publications of revocations whose process ended in the middle."""
    for credential in left_behind(
        state=Credential.State.REQUESTED, automatic_issuance=True
    ):
        finish(credential, credential.issue_automatically)
    for credential in left_behind(
        state=Credential.State.REVOKED, revocation_published_at=None
    ):
        finish(credential, credential.publish_revocation)


def left_behind(**where):
    rows = Credential.objects.select_related(
        "connection__my_key", "wallet", "tenant__network"
    )
    before = timezone.now() - LEFT_BEHIND
    left = rows.filter(role=Credential.Role.ISSUER, updated_at__lt=before, **where)
    return left.order_by("updated_at")[:AT_ONCE]


def finish(credential, step):
    """One that cannot be finished now goes behind the others."""
    try:
        step()
        return
    except AgencyError as error:
        logger.warning(
            "credential %s is still left behind: %s", credential.pk, error.code
        )
    except Exception:  # a bug of ours does not keep the others from being finished
        logger.exception("credential %s is still left behind", credential.pk)
    Credential.objects.filter(pk=credential.pk).update(updated_at=timezone.now())


@shared_task
def build_registries():
    """One for each definition whose registries are nearly full, one after the other."""
    definitions = CredentialDefinition.nearly_full().select_related("tenant__network")
    for definition in definitions.defer("private_key", "key_proof"):
        job = RevocationRegistry.begin_next(
            definition, settings.REVOCATION_REGISTRY_SIZE
        )
        job, is_ours = job or (None, False)
        if is_ours:
            attempt(job)


@shared_task
def publish_on_ledgers():
    """What calls left undone, job by job, until none is due."""
    while jobs := Publication.claim(1):
        attempt(jobs[0])
