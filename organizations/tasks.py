"""The task that counts what organizations use."""

from celery import shared_task

from organizations import daily_usage


@shared_task
def count_usage() -> None:
    daily_usage.count_usage()
