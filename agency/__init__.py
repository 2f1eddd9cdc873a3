"""What stands above the apps: settings, routes, processes, pages and operations.

It uses every app, and no app imports it.
"""

from agency.celery import app as celery_app
from core.version import __version__

__all__ = ["__version__", "celery_app"]
