"""How a process tells the workers that a table has work for them.

Rows are the queues. What goes through the broker is only the name of a task that looks
at one.
"""

import logging
import time

from celery import current_app

logger = logging.getLogger(__name__)
PAUSE_SECONDS = 5.0  # after a failure, in which the broker is left alone
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
