"""Fill the key pool in a separate process with the lowest priority."""

import logging
import subprocess
import sys

from celery import shared_task
from django.conf import settings

from wallets import key_pool

logger = logging.getLogger(__name__)
FILL_TIMEOUT_SECONDS = 600  # enough for eight keys on a slow machine


@shared_task
def fill_key_pool() -> None:
    """Run `manage.py fill_key_pool` if a key is missing, unless it is running already.

    One run generates all missing keys, so a second run at the same time is useless. It
    is killed after FILL_TIMEOUT_SECONDS, as when very many are missing: each key that
    it has made is committed, and the next run of this task goes on. A failed run is
    logged.
    """
    if not key_pool.missing_keys() or not key_pool.lock_filling():
        return
    # The lock was a test only: the subprocess takes it in a session of its own.
    key_pool.unlock_filling()
    manage = str(settings.BASE_DIR / "manage.py")
    command = ["nice", "-n", "19", sys.executable, manage, "fill_key_pool"]
    try:
        ran = subprocess.run(
            command, timeout=FILL_TIMEOUT_SECONDS, stdout=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        logger.info("keys are still missing: the next run makes them")
        return
    if ran.returncode:
        logger.error("fill_key_pool ended with exit code %s", ran.returncode)
