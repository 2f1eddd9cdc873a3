"""Run the jobs that publish on a remote ledger.

A ledger cannot be written to inside a transaction, and may not respond for hours. So a
job with the objects and their keys is stored first. The call that needs the result
runs the job itself, and a worker completes what the call does not finish. The rows
that others see (schema, definition, registry) are created only when everything is
published.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from core.database import clock
from core.errors import AgencyError, Conflict, Unavailable
from core.work.notify import notify_worker
from core.work.waiting import seconds_left
from credentials.models.publication import Publication, PublishedElsewhere

logger = logging.getLogger(__name__)
POLL_SECONDS = 0.1
ENDED = "It is published, or was given up. Send the request that began it again."
Publisher = Callable[[Publication, Any], None]
_publishers: dict[str, Publisher] = {}


def publisher(kind: str) -> Callable[[Publisher], Publisher]:
    """Register the function `(job, payload)` that publishes this kind.

    Each attempt calls it again, so it must detect what is already published.
    """

    def register(function: Publisher) -> Publisher:
        _publishers[kind] = function
        return function

    return register


def publish(job: Publication) -> None:
    """Make one attempt at a job that is leased to the caller, and raise its error."""
    _publishers[job.kind](job, job.payload())
    logger.info("%s is published", job)


def run_job(job: Publication) -> None:
    """As publish(), for a call that waits for the job.

    Before an AgencyError is raised, the job is put back for a later attempt.
    """
    try:
        publish(job)
    except AgencyError as error:
        job.put_back(error)
        raise


def wait_for_job(job: Publication, is_ours: bool) -> Publication:
    """Run a job, or wait for the process that runs it. Return the finished job.

    Call it outside of transactions. is_ours: whether the job is leased to this call.
    503 with the code of what is out of reach, such as `ledger_unavailable`: publishing
    continues in the background. A refusal of the ledger is raised with its own code.
    """
    try:
        if not is_ours:
            job = claim_job(job)
        if job.status == Publication.Status.PENDING:
            run_job(job)
    except Unavailable as error:
        # From now on, an equal request may get the result.
        Publication.objects.filter(pk=job.pk).update(attended_until=clock.now())
        raise Unavailable(
            error.code,
            f"{error.message} Publishing continues in the background: send the same "
            "request again to get the result.",
        ) from error
    if job.status == Publication.Status.EXHAUSTED:
        code, is_refusal, message = job.last_error.partition(": ")
        if is_refusal:
            raise Conflict(code, message)
        raise Unavailable(
            "ledger_unavailable",
            f"{job.tenant.network} did not accept this for a week. "
            "Send the request again.",
        )
    Publication.objects.filter(pk=job.pk).update(attended_until=None)
    return job


def claim_job(job: Publication) -> Publication:
    """Lease a job to the caller, or return it once it has ended.

    PublishedElsewhere if another process still has it after LEDGER_TIMEOUT seconds, or
    at the end of what the call may wait.
    """
    deadline = time.monotonic() + seconds_left(settings.LEDGER_TIMEOUT)
    pending = Publication.objects.filter(pk=job.pk, status=Publication.Status.PENDING)
    # The job may be scheduled for later: make it due now.
    pending.update(due_at=clock.now())
    while job.status == Publication.Status.PENDING:
        if claimed := Publication.claim(1, pk=job.pk):
            return claimed[0]
        if time.monotonic() > deadline:
            raise PublishedElsewhere
        time.sleep(POLL_SECONDS)
        job.refresh_from_db()
    return job


def retry_now(job: Publication) -> None:
    """Make a job due now and notify a worker after the commit.

    409 `publication_ended` if it has ended. A job that is leased stays with its owner.
    """
    pending = Publication.objects.filter(pk=job.pk, status=Publication.Status.PENDING)
    if not pending.update(due_at=clock.now()):
        raise Conflict("publication_ended", ENDED)
    transaction.on_commit(lambda: notify_worker("credentials.tasks.publish_on_ledgers"))


def waiting_deadline() -> datetime:
    """The time until which a call that begins now may wait for its job."""
    return clock.now() + timedelta(seconds=4 * settings.LEDGER_TIMEOUT)
