"""Uploading pictures by both clients' ways, and serving them to everybody."""

import io
import itertools
import random
import struct
import zlib

import pytest
from PIL import Image

from core.errors import Invalid
from tenants import pictures
from tenants.models import Asset
from tests.support.errors import assert_error, error_of
from tests.support.pictures import picture, storage, uploads

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["storage"]
KINDS = ("PNG", "JPEG", "WEBP", "GIF")
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'


def served(client, url, settings):
    return client.get(url.removeprefix(settings.PUBLIC_URL))


def test_a_picture_is_published_by_what_it_is(faber, client, settings):
    for kind, filename in itertools.product(KINDS, (None, "logo.exe")):
        answer = uploads(faber, picture(kind), filename=filename)
        assert answer.status_code == 200
        assert answer["Content-Type"] == "application/json"
        url = answer.json()
        assert url.startswith(f"{settings.PUBLIC_URL}/assets/")
        response = served(client, url, settings)
        assert response["Content-Type"] == f"image/{kind.lower()}"
        shown = opened(response.content)
        assert (shown.format, shown.size) == (kind, (8, 6))
        # What is served can do nothing.
        assert response["X-Content-Type-Options"] == "nosniff"
        assert response["Content-Security-Policy"] == "default-src 'none'; sandbox"
        kept = "public, max-age=31536000, immutable"
        assert response["Cache-Control"] == kept


def test_a_provider_publishes_too_whatever_the_query_says(provider):
    path = "/assets?filename=a.svg&contentType=image/svg%2Bxml"
    answer = uploads(provider, picture(), path)
    assert answer.json().keys() == {"publicUri"}
    assert Asset.objects.get().provider == provider.account


def test_nothing_but_the_pixels_is_kept():
    exif = Image.Exif()
    exif[0x010E], exif[0x0112] = "Secret place 4711", 6
    hidden = b"<script>alert(1)</script>"
    written, _ = pictures.reencode_picture(picture("JPEG", exif=exif) + hidden)
    assert b"4711" not in written and b"script" not in written
    shown = opened(written)
    assert (shown.size, dict(shown.getexif())) == ((6, 8), {})


def opened(data):
    with Image.open(io.BytesIO(data)) as shown:
        shown.load()
    return shown


def test_transparency_of_a_picture_is_kept():
    written, _ = pictures.reencode_picture(picture("PNG", "RGBA"))
    assert opened(written).mode == "RGBA"


def test_of_a_moving_picture_the_first_frame_stays():
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue", "green")]
    out = io.BytesIO()
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:])
    written, _ = pictures.reencode_picture(out.getvalue())
    assert opened(out.getvalue()).n_frames == 3
    assert getattr(opened(written), "n_frames", 1) == 1


def test_other_colours_are_turned_into_ours():
    for mode in ("1", "L", "LA", "P", "CMYK", "I;16"):
        out = io.BytesIO()
        Image.new(mode, (4, 4)).save(out, "JPEG" if mode == "CMYK" else "PNG")
        assert pictures.reencode_picture(out.getvalue())[0]


NO_PICTURES = [
    b"", b"x", SVG, b"GIF89a", b"\x89PNG\r\n\x1a\n" + b"\x00" * 100, picture()[:60],
    picture("JPEG")[:40], picture("BMP"), picture("TIFF"), picture("ICO", size=(16, 16)),
]  # fmt: skip


def test_what_is_no_picture_is_400_and_says_what_to_do(faber, storage):
    for data in NO_PICTURES:
        answer = uploads(faber, data)
        assert_error(answer, 400, "bad_image")
        assert "PNG, JPEG, WebP or GIF" in answer.json()["errors"]["uploadedFiles"][0]
    assert not Asset.objects.exists() and not list(storage.iterdir())
    # Nor is JSON instead of a form.
    for body in ({}, [], {"uploadedFiles": "x"}, {"uploadedFiles": ["x"]}, None):
        assert error_of(faber.post, "/common/upload", body).code == "bad_image"


def test_a_picture_with_too_many_pixels_is_refused_before_it_is_decoded(monkeypatch):
    monkeypatch.setattr(pictures, "encode_image", None)
    for width, height in ((2001, 2000), (30000, 30000)):
        with pytest.raises(Invalid, match=f"{width} x {height}"):
            pictures.reencode_picture(resized(picture(), width, height))


def resized(png, *size):
    """The picture with another size in its header, which says what to decode."""
    header = b"IHDR" + struct.pack(">II", *size) + png[24:29]
    return png[:12] + header + struct.pack(">I", zlib.crc32(header)) + png[33:]


def test_a_picture_may_be_as_large_as_the_setting_and_no_larger(faber, settings):
    fitting, larger = picture(size=(60, 60)), picture(size=(80, 80))
    settings.MAX_IMAGE_BYTES = len(fitting)
    assert uploads(faber, fitting).status_code == 200
    assert uploads(faber, larger).json()["code"] == "bad_image"


def test_a_body_far_over_the_limit_is_413(faber, settings):
    assert settings.MAX_IMAGE_BYTES == settings.MAX_BODY_BYTES == 256 * 1024
    assert uploads(faber, b"x" * settings.MAX_IMAGE_BYTES).status_code == 400
    far_over = b"x" * (settings.MAX_IMAGE_BYTES + 20_000)
    assert uploads(faber, far_over).status_code == 413


def test_random_damage_is_never_more_than_a_400():
    chance = random.Random(4711)
    for kind in ("PNG", "JPEG", "WEBP", "GIF"):
        whole = picture(kind)
        for _ in range(150):
            data = bytearray(whole)
            for _ in range(chance.randint(1, 6)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            try:
                pictures.reencode_picture(bytes(data))
            except Invalid as error:
                assert error.code == "bad_image"


def test_an_account_has_a_limit(faber, monkeypatch):
    monkeypatch.setattr(Asset, "LIMIT", 2)
    answers = [uploads(faber, picture()) for _ in range(3)]
    assert [answer.status_code for answer in answers[:2]] == [200, 200]
    assert_error(answers[2], 409, "asset_limit")


def test_any_other_name_is_404(client):
    others = ("../../etc/passwd", "x.png", "x" * 22 + ".svg", "é" * 22 + ".png")
    for name in ("x" * 22 + ".png", *others):
        assert client.get(f"/assets/{name}").status_code == 404
