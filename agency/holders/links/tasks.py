"""The task that deletes old rows of closed links."""

from celery import shared_task

from agency.holders.links import closed_links


@shared_task
def forget_closed_links() -> None:
    closed_links.forget_closed_links()
