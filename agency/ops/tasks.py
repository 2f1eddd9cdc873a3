"""Tasks that need to know which processes run."""

from celery import shared_task

from agency.ops import former_version, heartbeats
from credentials import retention


@shared_task
def forget_processes() -> None:
    heartbeats.forget_processes()


@shared_task
def fold_status_lists() -> None:
    if not former_version.may_run():
        retention.fold_lists()
