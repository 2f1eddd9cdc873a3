"""The files in the storage that rows need."""

from credentials.tails import needed_tails
from tenants.assets import FOLDER, storage_path
from tenants.models import Asset

FOLDERS = ("tails", FOLDER)


def needed_files() -> set[str]:
    """Return the names of all files that a row names."""
    pictures = Asset.objects.values_list("name", flat=True)
    return {*needed_tails(), *map(storage_path, pictures)}
