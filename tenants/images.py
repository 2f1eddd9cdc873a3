"""Pictures from strangers: recognised by content, decoded, and written anew. The only Pillow."""

import io
import struct
import zlib

from django.conf import settings
from PIL import Image, ImageOps

from agency.core.errors import Invalid

FORMATS = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp", "GIF": "gif"}
MAX_PIXELS = 4_000_000
MAX_STORED_BYTES = 2 * 1024 * 1024
Image.MAX_IMAGE_PIXELS = None  # we judge the size ourselves, before anything is decoded
BROKEN = (
    OSError, ValueError, SyntaxError, EOFError, TypeError, IndexError, KeyError, AttributeError,
    OverflowError, MemoryError, struct.error, zlib.error,
)  # fmt: skip


def rewrite(data: bytes) -> tuple[bytes, str]:
    """The picture without anything but its pixels, and the ending of its name.

    Of a moving picture only the first frame stays. Raises Invalid("bad_image") for everything
    that is not a picture, too large, or does not decode.
    """
    if len(data) > settings.MAX_IMAGE_BYTES:
        raise bad_image(f"The picture is larger than {settings.MAX_IMAGE_BYTES} bytes.")
    try:
        with Image.open(io.BytesIO(data), formats=list(FORMATS)) as image:
            kind, (width, height) = str(image.format), image.size
            if width * height > MAX_PIXELS:
                raise bad_image(f"The picture has {width} x {height} pixels.")
            written = write(image, kind)
    except BROKEN as error:
        raise bad_image("That is not a picture that can be read.") from error
    if len(written) > MAX_STORED_BYTES:
        raise bad_image("The picture is too detailed.")
    return written, FORMATS[kind]


def write(image: Image.Image, kind: str) -> bytes:
    upright = ImageOps.exif_transpose(image)
    transparent = kind != "JPEG" and upright.has_transparency_data
    out = io.BytesIO()
    upright.convert("RGBA" if transparent else "RGB").save(out, kind)
    return out.getvalue()


def bad_image(reason: str) -> Invalid:
    hint = (
        f"{reason} Send a PNG, JPEG, WebP or GIF of at most {settings.MAX_IMAGE_BYTES} bytes and "
        f"{MAX_PIXELS} pixels as the form field `uploadedFiles`; turn an SVG into a PNG first."
    )
    return Invalid("bad_image", hint, {"uploadedFiles": [hint]})
