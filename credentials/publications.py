"""Running the jobs that publish on a ledger which others run.

A ledger cannot be written to inside a transaction, and may not respond for hours. So
what is to be published is stored as a job first, with its keys. The call that wants
the result runs the job itself, and a worker completes what the call leaves undone. The
rows that others see (schema, definition, registry) are created once everything is
published, and not before.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.utils import timezone

from agency.core.errors import AgencyError, Conflict, Unavailable
from credentials.models.publication import LostLease, Publication

logger = logging.getLogger(__name__)
POLL_SECONDS = 0.1
Publisher = Callable[[Publication, Any], None]
_publishers: dict[str, Publisher] = {}


def publisher(kind: str) -> Callable[[Publisher], Publisher]:
    """Register the function `(job, payload)` that publishes this kind.

    Each attempt calls it from its beginning, so it must find what is published
    already.
    """

    def register(function: Publisher) -> Publisher:
        _publishers[kind] = function
        return function

    return register


def run_job(job: Publication) -> None:
    """Make one attempt, with a job leased to the caller. Raises what ended it."""
    try:
        _publishers[job.kind](job, job.payload())
    except Unavailable as error:
        job.put_back(error.code)
        raise
    except AgencyError as error:
        reason = f"{error.code}: {error.message}"
        if job.kind in job.CALLER_VISIBLE:
            job.exhaust(reason, material=None)
        else:
            job.put_back(reason)
        raise


def try_job(job: Publication) -> None:
    """Run a job in a worker: errors are logged, not raised, and the job is tried again."""
    try:
        run_job(job)
    except AgencyError as error:
        logger.warning("%s is not published: %s", job, error.code)
    except Exception as error:  # a bug of ours ends neither the worker nor the job
        logger.exception("%s is not published", job)
        job.put_back(type(error).__name__)


def wait_for_job(job: Publication, is_ours: bool) -> Publication:
    """The job, done by this call or by the process that has it.

    503 `ledger_unavailable` if the ledger does not take it now: it goes on in the
    background. is_ours: whether this call has the lease.
    """
    try:
        if not is_ours:
            job = claim_job(job)
        if job.status == Publication.Status.PENDING:
            run_job(job)
    except Unavailable:
        # From now on an equal request may take the result.
        Publication.objects.filter(pk=job.pk).update(attended_until=timezone.now())
        raise Unavailable(
            "ledger_unavailable",
            f"{job.tenant.network} did not respond. Publishing continues in the background: send "
            "the same request again to get the result.",
        ) from None
    if job.status == Publication.Status.EXHAUSTED:
        code, is_refusal, message = job.last_error.partition(": ")
        if is_refusal:
            raise Conflict(code, message)
        raise Unavailable(
            "ledger_unavailable",
            f"{job.tenant.network} did not accept this for a week. Send the request again.",
        )
    Publication.objects.filter(pk=job.pk).update(attended_until=None)
    return job


def claim_job(job: Publication) -> Publication:
    """The job, leased to the caller or ended. LostLease if another has it for long."""
    deadline = time.monotonic() + settings.LEDGER_TIMEOUT
    pending = Publication.objects.filter(pk=job.pk, status=Publication.Status.PENDING)
    pending.update(due_at=timezone.now())
    while job.status == Publication.Status.PENDING:
        if claimed := Publication.claim(1, pk=job.pk):
            return claimed[0]
        if time.monotonic() > deadline:
            raise LostLease
        time.sleep(POLL_SECONDS)
        job.refresh_from_db()
    return job


def waiting_deadline() -> datetime:
    """Until when a call may wait for its job, counted from now."""
    return timezone.now() + timedelta(seconds=4 * settings.LEDGER_TIMEOUT)
