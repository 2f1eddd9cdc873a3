"""Static files as collectstatic stores them: compressed, under hashed names."""

from typing import Any

from django.apps import apps
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import staticfiles_storage
from django.core import checks
from whitenoise.storage import CompressedManifestStaticFilesStorage

COLLECT = (
    "Run `python manage.py collectstatic --no-input`, then start the web server again."
)


class CollectedFilesStorage(CompressedManifestStaticFilesStorage):
    """Adds the remedy to Django's error about a missing manifest entry.

    The error stays a ValueError, because WhiteNoise expects one.
    """

    def stored_name(self, name: str) -> str:
        try:
            return super().stored_name(name)
        except ValueError as error:
            raise ValueError(
                f"The static file {name} is not collected. {COLLECT}"
            ) from error


def check_static_files(
    app_configs: object, **options: object
) -> list[checks.CheckMessage]:
    """agency.E002: collectstatic was not run, or not since the last upgrade."""
    if not isinstance(staticfiles_storage, CollectedFilesStorage):
        return []
    config: Any = apps.get_app_config("staticfiles")
    for finder in finders.get_finders():
        for name, _ in finder.list(config.ignore_patterns):
            if name not in staticfiles_storage.hashed_files:
                return [
                    checks.Error(
                        f"The static file {name} is not collected. {COLLECT}",
                        id="agency.E002",
                    )
                ]
    return []
