from agency.celery import app as celery_app

__version__ = "0.1.0"  # also in pyproject.toml; CHANGELOG.md says what is in it

__all__ = ["__version__", "celery_app"]
