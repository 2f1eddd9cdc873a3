"""Pictures of provider accounts, stored under random names and served publicly."""

import secrets

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction

from core.errors import Conflict
from tenants import pictures, quotas
from tenants.models import Asset, Provider

FOLDER = "assets"


@transaction.atomic
def store_picture(provider: Provider, data: bytes) -> Asset:
    """Re-encode a picture and store it: its file at once, its row in a transaction.

    Return the row. The transaction locks the account. 409 `asset_limit`.
    """
    picture, extension = pictures.reencode_picture(data)
    # Lock the row, so that concurrent uploads cannot exceed the limit.
    provider = Provider.objects.select_for_update(no_key=True).get(pk=provider.pk)
    if provider.assets.count() >= Asset.LIMIT:
        message = f"You have {Asset.LIMIT} pictures; no more are kept."
        raise Conflict("asset_limit", message)
    quotas.require_room_for_picture(provider, len(picture))
    name = f"{secrets.token_urlsafe(16)}.{extension}"
    # If the transaction fails after this, retention.py deletes the file.
    default_storage.save(storage_path(name), ContentFile(picture))
    return provider.assets.create(name=name, size=len(picture))


def storage_path(name: str) -> str:
    """Return the path of a picture's file in the storage."""
    return f"{FOLDER}/{name}"
