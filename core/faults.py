"""Fault points, at which tests kill a process to test the recovery."""

import itertools
import os
import signal

from django.conf import settings

passes = itertools.count(1)


def fault_point(name: str) -> None:
    """Kill this process if FAULT_POINT names this point and FAULT_INJECTION is on.

    FAULT_POINT: the name, or `name:3` for the third time that the process comes there.
    """
    wanted, _, number = settings.FAULT_POINT.partition(":")
    if name == wanted and next(passes) >= int(number or 1):
        os.kill(os.getpid(), signal.SIGKILL)
