"""Background tasks for credentials. They take no arguments: they query the rows."""

import logging
from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.db.models import QuerySet

from core.database import clock
from core.database.columns import ColumnValue
from core.errors import AgencyError
from core.work.leases import attempt, work_on
from credentials import name_filling, retention
from credentials.bulk import issuing
from credentials.bulk import retention as bulk_retention
from credentials.issue_credential.handlers import issue_automatically
from credentials.ledgers.webvh import own_did
from credentials.models import Credential, CredentialDefinition, Publication
from credentials.openid4vci import holding
from credentials.publications import publish
from credentials.registries import begin_next_registry
from credentials.revocation import publish_and_notify

logger = logging.getLogger(__name__)
LEFT_BEHIND = timedelta(seconds=60)
AT_ONCE = 100  # rows per run


@shared_task
def finish_what_was_left_behind() -> None:
    """Finish issues and revocations whose process stopped in the middle."""
    unissued = left_behind(state=Credential.State.REQUESTED, automatic_issuance=True)
    for credential in unissued:
        attempt(credential, issue_automatically, try_later)
    unpublished = left_behind(
        state=Credential.State.REVOKED, revocation_published_at=None
    )
    for credential in unpublished:
        attempt(credential, publish_and_notify, try_later)


def left_behind(**filters: ColumnValue) -> QuerySet[Credential]:
    """Credentials of issuers that wait for their next step, longest first."""
    rows = Credential.objects.select_related(
        "connection__my_key", "wallet", "tenant__network"
    )
    rows = rows.filter(
        role=Credential.Role.ISSUER,
        updated_at__lt=clock.now() - LEFT_BEHIND,
        wallet__deleted_at=None,
        tenant__deleted_at=None,
        tenant__frozen_at=None,
        **filters,
    )
    return rows.order_by("updated_at")[:AT_ONCE]


def try_later(credential: Credential, error: Exception) -> None:
    """After a failure it is tried again after the others."""
    if isinstance(error, AgencyError):
        logger.warning(
            "credential %s is still left behind: %s", credential.pk, error.code
        )
    else:
        logger.exception("credential %s is still left behind", credential.pk)
    Credential.objects.filter(pk=credential.pk).update(updated_at=clock.now())


@shared_task
def build_registries() -> None:
    """Build a registry for each definition that needs one soon."""
    definitions = CredentialDefinition.nearly_full().select_related("tenant__network")
    for definition in definitions.defer("private_key", "key_proof"):
        started = begin_next_registry(definition, settings.REVOCATION_REGISTRY_SIZE)
        if started is None:
            continue
        job, is_ours = started
        if is_ours:  # else publish_on_ledgers() runs it
            work_on(job, publish)


@shared_task
def publish_on_ledgers() -> None:
    """Run the jobs that calls did not finish, one by one, until none is due."""
    while jobs := Publication.claim(1):
        work_on(jobs[0], publish)


@shared_task
def delete_copied_lists() -> None:
    retention.delete_copied_lists()
    retention.delete_read_resources()


@shared_task
def rotate_webvh_keys() -> None:
    """Take the next step of each rotation of the keys of a did:webvh that is due."""
    own_did.take_due_steps()


@shared_task
def delete_spent_nonces() -> None:
    retention.delete_spent_nonces()


@shared_task
def ask_issuers() -> None:
    """Ask the issuers of what hosted wallets wait for."""
    holding.ask_due_issuers()


@shared_task
def issue_bulks() -> None:
    """Offer the rows of bulks until none waits."""
    issuing.loop.run()


@shared_task
def keep_name_search() -> None:
    """Let people be found by names of before, or not where that is unwanted."""
    name_filling.keep_name_search()


@shared_task
def delete_old_bulks() -> None:
    bulk_retention.delete_old_bulks()
    bulk_retention.delete_old_mailings()
