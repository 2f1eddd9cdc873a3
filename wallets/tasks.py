"""Fill the key pool in a separate process with the lowest priority."""

import subprocess
import sys

from celery import shared_task
from django.conf import settings

from wallets import key_pool

FILL_TIMEOUT_SECONDS = 600  # enough for eight keys on a slow machine


@shared_task
def fill_key_pool() -> None:
    """Run `manage.py fill_key_pool` if a key is missing, unless it is running already.

    One run generates all missing keys, so a second run at the same time is useless.
    """
    if not key_pool.missing_keys() or not key_pool.lock_filling():
        return
    # The lock was a test only: the subprocess takes it in a session of its own.
    key_pool.unlock_filling()
    manage = str(settings.BASE_DIR / "manage.py")
    command = ["nice", "-n", "19", sys.executable, manage, "fill_key_pool"]
    subprocess.run(command, timeout=FILL_TIMEOUT_SECONDS, stdout=subprocess.DEVNULL)
