"""Notify workers that a table has due rows.

The queues are tables. The broker carries only the name of a task that reads one.
"""

import logging
import time

from celery import current_app

logger = logging.getLogger(__name__)
PAUSE_SECONDS = 5.0  # after a failure; the broker is not called meanwhile
paused_until = 0.0


def notify_worker(task_name: str) -> None:
    """Ask a worker to run a task now. Never raises.

    The rows are safe without it: beat sends the same tasks every few seconds.
    """
    global paused_until
    if time.monotonic() < paused_until:
        return
    try:
        current_app.send_task(task_name, retry=False, ignore_result=True)
    except Exception as error:  # kombu, redis and sockets raise errors of their own
        paused_until = time.monotonic() + PAUSE_SECONDS
        name = type(error).__name__
        logger.warning(
            "the broker is out of reach (%s); beat will find what is due", name
        )
