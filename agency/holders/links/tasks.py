"""The task that deletes old rows of closed links."""

from celery import shared_task

from agency.holders.links import closed_links


@shared_task
def forget_closed_links() -> None:
    closed_links.forget_closed_links()


# The beat of a version before sends this name until it is restarted. To be removed in
# the release after this one.
shared_task(name="agency.holder_pages.tasks.forget_closed_links")(
    forget_closed_links.run
)
