"""Fault points, at which tests kill a process to test the recovery."""

import os
import signal

from django.conf import settings


def fault_point(name: str) -> None:
    """Kill this process if FAULT_POINT names this point and FAULT_INJECTION is on."""
    if name == settings.FAULT_POINT:
        os.kill(os.getpid(), signal.SIGKILL)
