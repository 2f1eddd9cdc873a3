"""Fault points: where tests let a process die, to see how others recover."""

import os
import signal

from django.conf import settings


def fault_point(name: str) -> None:
    """Kill this process if FAULT_POINT names this point and FAULT_INJECTION is on."""
    if name == settings.FAULT_POINT:
        os.kill(os.getpid(), signal.SIGKILL)
