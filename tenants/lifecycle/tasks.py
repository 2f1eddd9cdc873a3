"""The tasks that count what organizations use, and remove what was deleted."""

from celery import shared_task

from tenants.lifecycle import daily_usage, deletion, erasure, exchange_retention


@shared_task
def count_usage() -> None:
    daily_usage.count_usage()


@shared_task
def erase() -> None:
    deletion.end_due_deletions()
    erasure.erase_due()


@shared_task
def delete_old_exchanges() -> None:
    exchange_retention.delete_old_exchanges()


# The beat of a version before sends these names until it is restarted. To be removed in
# the release after this one.
for task in (count_usage, erase, delete_old_exchanges):
    shared_task(name=f"organizations.tasks.{task.__name__}")(task.run)
