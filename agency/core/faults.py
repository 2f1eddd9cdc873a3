"""Places at which a test lets its process die, to see what comes of it."""

import os
import signal

from django.conf import settings


def point(name: str) -> None:
    """Kills the process here if FAULT_POINT names this place and FAULT_INJECTION is on."""
    if name == settings.FAULT_POINT:
        os.kill(os.getpid(), signal.SIGKILL)
