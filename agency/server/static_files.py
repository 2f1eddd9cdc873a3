"""Static files as collectstatic stores them: compressed, under hashed names."""

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
