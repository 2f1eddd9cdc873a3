"""A worker in its own process that is killed while it handles a message."""

import os
import signal
import subprocess
import sys

from django.conf import settings
from django.db import connection

from tests.support import queues

WORK = """
import django
django.setup()
from connections import tasks
tasks.sweep()
tasks.deliver()
"""
FAULT_POINTS = ["inside_handling", "after_message_before_mark"]


def killed_worker(fault):
    """Run a worker in its own process on the test's database. Return its exit code."""
    database = connection.settings_dict
    server = f"{database['HOST']}:{database['PORT']}/{database['NAME']}"
    environment = os.environ | {
        "DATABASE_URL": (
            f"postgres://{database['USER']}:{database['PASSWORD']}@{server}"
        ),
        "DJANGO_SETTINGS_MODULE": "agency.settings",
        "OUTGOING_ALLOW_LOOPBACK": "1",
        "PUBLIC_URL": settings.PUBLIC_URL,
        "FAULT_POINT": fault,
        "FAULT_INJECTION": "1",
    }
    done = subprocess.run([sys.executable, "-c", WORK], env=environment, timeout=60)
    return done.returncode


def die_and_recover(fault):
    """Kill a worker at this point. The next one does the work after the lease."""
    assert killed_worker(fault) == -signal.SIGKILL
    queues.worker_catches_up()
