"""Pictures of provider accounts: re-encoded, as nobody trusts their sources, and stored
under random names, to be served publicly. Only this module imports Pillow.
"""

import io
import secrets
import struct
import zlib

from django.conf import settings
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import transaction
from PIL import Image, ImageOps

from core.errors import Conflict, Invalid
from tenants import quotas
from tenants.models import Asset, Provider

FOLDER = "assets"
EXTENSIONS = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp", "GIF": "gif"}
CONTENT_TYPES = [f"image/{kind.lower()}" for kind in EXTENSIONS]
MAX_PIXELS = 4_000_000
MAX_STORED_BYTES = 2 * 1024 * 1024
# reencode_picture() checks MAX_PIXELS itself, before anything is decoded.
Image.MAX_IMAGE_PIXELS = None
# The exceptions of Pillow's decoders for broken files.
DECODE_ERRORS = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    TypeError,
    IndexError,
    KeyError,
    AttributeError,
    OverflowError,
    MemoryError,
    struct.error,
    zlib.error,
)


def reencode_picture(data: bytes) -> tuple[bytes, str]:
    """Return a picture without its metadata, and the extension of its file name.

    The format is recognized by content. Only the first frame of an animation is kept.
    Raises Invalid("bad_image") if the data is not a picture, is too large or cannot be
    decoded.
    """
    if len(data) > settings.MAX_IMAGE_BYTES:
        raise bad_image(f"The picture is larger than {settings.MAX_IMAGE_BYTES} bytes.")
    try:
        with Image.open(io.BytesIO(data), formats=list(EXTENSIONS)) as image:
            image_format = str(image.format)
            width, height = image.size
            if width * height > MAX_PIXELS:
                raise bad_image(f"The picture has {width} x {height} pixels.")
            encoded = encode_image(image, image_format)
    except DECODE_ERRORS as error:
        raise bad_image("This is not a picture that can be read.") from error
    if len(encoded) > MAX_STORED_BYTES:
        raise bad_image("The picture is too detailed.")
    return encoded, EXTENSIONS[image_format]


def encode_image(image: Image.Image, image_format: str) -> bytes:
    # The orientation is in the EXIF data, which is removed.
    upright = ImageOps.exif_transpose(image)
    is_transparent = image_format != "JPEG" and upright.has_transparency_data
    encoded = io.BytesIO()
    upright.convert("RGBA" if is_transparent else "RGB").save(encoded, image_format)
    return encoded.getvalue()


def bad_image(reason: str) -> Invalid:
    message = (
        f"{reason} Send a PNG, JPEG, WebP or GIF of at most "
        f"{settings.MAX_IMAGE_BYTES} bytes and {MAX_PIXELS} pixels as the form field "
        "`uploadedFiles`; convert an SVG to a PNG first."
    )
    return Invalid("bad_image", message, {"uploadedFiles": [message]})


@transaction.atomic
def store_picture(provider: Provider, data: bytes) -> Asset:
    """Re-encode a picture and store it: its file at once, its row in a transaction.

    Return the row. The transaction locks the account. 409 `asset_limit`.
    """
    picture, extension = reencode_picture(data)
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
    return f"{FOLDER}/{name}"
