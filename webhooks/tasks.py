"""The doorbell of webhooks. No arguments: the work is in the rows."""

from typing import Any

from celery import shared_task
from celery.signals import worker_shutting_down

from webhooks import retention
from webhooks.delivery import notices, recovery
from webhooks.delivery.worker import new_dispatcher

dispatcher = new_dispatcher()


@shared_task
def deliver() -> None:
    """Calls what is due, in the worker of its own that the Procfile starts."""
    dispatcher.run()


@worker_shutting_down.connect
def stop_dispatcher(**signal: Any) -> None:
    dispatcher.stop()


@shared_task
def keep_house() -> None:
    """Closes what waits for disabled webhooks, goes on with recoveries, writes to people."""
    recovery.keep()
    notices.send_due()


@shared_task
def forget() -> None:
    retention.forget()
