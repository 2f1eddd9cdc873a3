from agency.celery import app as celery_app
from agency.core.version import __version__

__all__ = ["__version__", "celery_app"]
