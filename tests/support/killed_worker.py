"""A worker in its own process that is killed while it handles a message, or a call."""

import json
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
CALL = """
import json, os, pkgutil, signal
from django.test import Client
from django.test.utils import setup_test_environment
from tests.support.keys import stored_keys

call = json.loads(os.environ["CALL"])
owner, _, name = call.pop("after").rpartition(".")
owner = pkgutil.resolve_name(owner)
function = getattr(owner, name)

def do_and_die(*given, **named):
    function(*given, **named)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(owner, name, do_and_die)
setup_test_environment()
with stored_keys():
    Client().generic(**call)
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


class KilledClient:
    """In place of Django's: each call is made by a process that is killed after this.

    after: a function or method by its dotted name, as the code that calls it finds it.
    given: variables of the process.
    """

    def __init__(self, after, **given):
        self.after, self.given = after, given

    def post(self, path, data, content_type, headers=()):
        text = data if isinstance(data, str) else json.dumps(data)
        self.generic("POST", path, text, content_type, headers=dict(headers))

    def generic(self, method, path, data, content_type, headers):
        call = {"method": method, "path": path, "data": data, "headers": headers}
        call |= {"content_type": content_type, "after": self.after}
        process = start_worker(CALL, CALL=json.dumps(call), **self.given)
        assert process.wait(timeout=60) == -signal.SIGKILL
