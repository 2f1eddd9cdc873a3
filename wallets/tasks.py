"""Keeps the key pool full, in a process of its own at the lowest priority."""

import subprocess
import sys

from celery import shared_task
from django.conf import settings

from wallets import key_pool

PATIENCE = 600  # seconds: eight keys on a slow machine


@shared_task
def fill_key_pool() -> None:
    """Starts `manage.py fill_key_pool` when a key is missing, and waits for it. One that is at work
    makes all that are missing, so no second one is started beside it."""
    if not key_pool.wanted() or not key_pool.claim():
        return
    key_pool.release()
    manage = str(settings.BASE_DIR / "manage.py")
    command = ["nice", "-n", "19", sys.executable, manage, "fill_key_pool"]
    subprocess.run(command, timeout=PATIENCE, stdout=subprocess.DEVNULL)
