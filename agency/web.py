"""What the web process serves. Like agency/wsgi.py, it is imported by the server only."""

import os

import django

from agency.core.logs import log_start
from agency.server.parent import end_with_master

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.settings")

end_with_master()
django.setup()

from agency.ops import startup  # noqa: E402  (these import models)
from agency.server.web import Web  # noqa: E402

startup.require()
application = Web()
log_start("web")
