"""What stands above the apps: settings, routes, processes, pages and operations.

`core/` and `api/` are the exceptions: the apps build on them (docs/architecture.md).
"""

from agency.celery import app as celery_app
from agency.core.version import __version__

__all__ = ["__version__", "celery_app"]
