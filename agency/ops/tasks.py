"""The task that deletes the rows of processes that ended."""

from celery import shared_task

from agency.ops import heartbeats


@shared_task
def forget_processes() -> None:
    heartbeats.forget_processes()
