"""The application of the web process. Only its server imports this module."""

import gc
import os
import signal
import sys

import django

from agency.server.parent import NOT_READY, end_with_master
from core.database.prepared_statements import prepare_statements
from core.telemetry.logs import log_start, log_uncaught

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.settings")

# Seconds after which a thread that computes must hand over Python's lock. A quick
# request waits for it after each statement: with the default of 5 ms it took several
# times as long beside the long calls of others.
sys.setswitchinterval(0.0005)
end_with_master()
django.setup()
log_uncaught()
prepare_statements()

from agency.ops import checks, health, heartbeats  # noqa: E402  (these import models)
from agency.server.web import WebApplication  # noqa: E402
from tenants import request_log  # noqa: E402

checks.check_or_exit()
signal.signal(NOT_READY, health.note_stopping)
application = WebApplication()
log_start("web")
heartbeats.start_heartbeats("web")
request_log.start_writer()
# What is loaded now lives as long as the process: no collection needs to look at it.
gc.collect()
gc.freeze()
