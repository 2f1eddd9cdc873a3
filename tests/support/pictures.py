"""Pictures of noise, their uploads, and storage that is deleted after the test."""

import io

import pytest
from django.test.client import BOUNDARY, MULTIPART_CONTENT
from PIL import Image


@pytest.fixture(autouse=True)
def storage(settings, tmp_path):
    stored = {"BACKEND": "django.core.files.storage.FileSystemStorage"}
    stored["OPTIONS"] = {"location": tmp_path}
    settings.STORAGES = settings.STORAGES | {"default": stored}
    return tmp_path


def picture(kind="PNG", mode="RGB", size=(8, 6), **options):
    out = io.BytesIO()
    Image.effect_noise(size, 90).convert(mode).save(out, kind, **options)
    return out.getvalue()


def form(data, filename=None):
    """The form as clients send it: without a file name, unless it is a real file."""
    name = 'name="uploadedFiles"' + (f'; filename="{filename}"' if filename else "")
    head = f"--{BOUNDARY}\r\nContent-Disposition: form-data; {name}\r\n"
    head += "Content-Type: application/octet-stream\r\n\r\n"
    return head.encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()


def uploads(api, data, path="/common/upload", filename=None):
    given = (api.prefix + path, form(data, filename), MULTIPART_CONTENT)
    return api.client.generic("POST", *given, headers=api.headers)
