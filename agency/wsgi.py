"""The web process behind a WSGI server, such as gunicorn: see docs/reliability.md.

The usual server is that of agency/web.py, which reads bodies before it takes a thread.
"""

import os

from django.core.wsgi import get_wsgi_application

from agency.server.parent import end_with_master
from core.database.prepared_statements import prepare_statements
from core.telemetry.logs import log_start, log_uncaught

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agency.settings")

end_with_master()
application = get_wsgi_application()
log_uncaught()
prepare_statements()

from agency.ops import checks, heartbeats  # noqa: E402  (these import models)
from tenants import request_log  # noqa: E402

checks.check_or_exit()
log_start("web")
heartbeats.start_heartbeats("web")
request_log.start_writer()
