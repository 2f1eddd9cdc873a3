"""The application of the web process. Only its server imports this module."""

import os

import django

from agency.core.database.prepared import prepare_statements
from agency.core.logs import log_start
from agency.server.parent import end_with_master

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.settings")

end_with_master()
django.setup()
prepare_statements()

from agency.ops import startup  # noqa: E402  (these import models)
from agency.server.web import WebApplication  # noqa: E402

startup.check_or_exit()
application = WebApplication()
log_start("web")
