"""The tasks that count what organizations use, and remove what was deleted."""

from celery import shared_task

from organizations import daily_usage, erasure


@shared_task
def count_usage() -> None:
    daily_usage.count_usage()


@shared_task
def erase() -> None:
    erasure.erase_due()
