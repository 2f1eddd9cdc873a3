"""Celery is the doorbell: tasks find their work as due rows, arguments carry ids only."""

import logging
import os
import time
from typing import Any

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.settings")

app = Celery("agency")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

logger = logging.getLogger(__name__)
REST = 5.0  # seconds in which a broker that is out of reach is left alone
silent_until = 0.0


def ring(task: Any) -> None:
    """Asks the worker to run a task now. Its rows are safe without it: the beat finds them within
    seconds. Never raises, and waits for a broker that hangs once in a while only."""
    global silent_until
    if time.monotonic() < silent_until:
        return
    try:
        task.apply_async(retry=False, ignore_result=True)
    except Exception as error:  # kombu, redis and sockets raise errors of their own
        silent_until = time.monotonic() + REST
        name = type(error).__name__
        logger.warning("the broker is out of reach (%s); the beat will find what is due", name)
