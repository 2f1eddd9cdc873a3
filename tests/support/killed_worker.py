"""A worker in its own process that is killed while it handles a message."""

import os
import signal
import subprocess
import sys

from django.conf import settings
from django.db import connection

from tests.support import queues

SETUP = """
import django
django.setup()
"""
WORK = """
from connections import tasks
tasks.sweep()
tasks.deliver()
"""
FAULT_POINTS = ["inside_handling", "after_message_before_mark"]


def start_worker(work, **given):
    """Start a process that does this on the test's database. given: its variables."""
    database = connection.settings_dict
    server = f"{database['HOST']}:{database['PORT']}/{database['NAME']}"
    environment = os.environ | {
        "DATABASE_URL": (
            f"postgres://{database['USER']}:{database['PASSWORD']}@{server}"
        ),
        "DJANGO_SETTINGS_MODULE": "agency.settings",
        "OUTGOING_ALLOW_LOOPBACK": "1",
        "PUBLIC_URL": settings.PUBLIC_URL,
    }
    return subprocess.Popen(
        [sys.executable, "-c", SETUP + work], env=environment | given
    )


def killed_worker(fault):
    """Run a worker that is killed at this point. Return its exit code."""
    worker = start_worker(WORK, FAULT_POINT=fault, FAULT_INJECTION="1")
    return worker.wait(timeout=60)


def die_and_recover(fault):
    """Kill a worker at this point. The next one does the work after the lease."""
    assert killed_worker(fault) == -signal.SIGKILL
    queues.worker_catches_up()
