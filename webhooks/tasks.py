"""Celery tasks of webhooks. They have no arguments: the work is stored in the rows."""

from celery import shared_task

from webhooks import retention
from webhooks.delivery import recovery
from webhooks.delivery.worker import DeliveryLoop
from webhooks.events import epochs

loop = DeliveryLoop()


@shared_task
def deliver() -> None:
    """Make the calls that are due. Runs in a separate worker, see the Procfile."""
    loop.run()


@shared_task
def maintain() -> None:
    """Close deliveries of disabled webhooks, continue recoveries, tell of restores."""
    recovery.run_maintenance()
    while epochs.tell_organizations():
        pass


@shared_task
def delete_old_events() -> None:
    retention.delete_old_events()


# The beat of version 0.1.0 uses these names until it is restarted. To be removed in the
# release after this one.
@shared_task(name="webhooks.tasks.keep_house")
def keep_house() -> None:
    recovery.run_maintenance()


@shared_task(name="webhooks.tasks.forget")
def forget() -> None:
    retention.delete_old_events()
