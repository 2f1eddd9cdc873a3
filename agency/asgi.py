"""The application of the stream process. Only its server imports this module."""

import os

import django

from agency.server.parent import end_with_master
from core.telemetry.logs import log_start, log_uncaught

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.settings")

end_with_master()
django.setup()
log_uncaught()

from agency.ops import checks, heartbeats  # noqa: E402  (these import models)
from agency.server.cors import ASGIMiddleware  # noqa: E402
from agency.server.stream import Application  # noqa: E402

checks.check_or_exit()
application = ASGIMiddleware(Application())
log_start("stream")
heartbeats.start_heartbeats("stream")
