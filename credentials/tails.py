"""Tails files of revocation registries, stored by their hash and never changed."""

import hashlib
import os
import re
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files.base import ContentFile, File
from django.core.files.storage import default_storage
from django.db.models import Exists, OuterRef, Q

from agency.core import http, network_reads
from agency.core.errors import Unavailable
from agency.core.waiting import seconds_left
from credentials.models.published import PublishedObject
from credentials.models.registry import RevocationRegistry
from tenants.models import Network
from wallets import keys

TAILS_FOLDER = "tails/"
TAILS_HASH = r"[1-9A-HJ-NP-Za-km-z]{40,50}"


def tails_name(tails_hash: str) -> str:
    """The name of the file in the storage that all processes share."""
    return f"{TAILS_FOLDER}{tails_hash}"


def tails_url(tails_hash: str) -> str:
    return f"{settings.PUBLIC_URL}/tails/{tails_hash}"


def needed_tails() -> set[str]:
    """The names of the files of all registries that were made here.

    Also of deleted organizations: their credentials are still proven.
    """
    rows = RevocationRegistry.objects.filter(registry_id=OuterRef("object_id"))
    made_here = Q(network__kind=Network.Kind.LOCAL) | Exists(rows)
    registries = PublishedObject.objects.filter(
        made_here, kind=PublishedObject.Kind.REGISTRY
    )
    hashes = registries.values_list("body__value__tailsHash", flat=True)
    return {tails_name(tails_hash) for tails_hash in hashes}


def is_whole(path: Path) -> bool:
    """Whether a tails file has the hash that is its name."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
    return keys.encode_key(digest) == path.name


def store_tails(source: Path, tails_hash: str) -> None:
    """Copy a file that was made here to the storage, from which it is also served."""
    if default_storage.exists(tails_name(tails_hash)):
        return
    with source.open("rb") as file:
        default_storage.save(tails_name(tails_hash), File(file))


def tails_path(public: dict[str, Any]) -> str:
    """The local path of a registry's tails file, which is downloaded if necessary.

    503 `tails_unavailable`, also if the file does not have the registry's hash.
    """
    tails_hash = public["value"]["tailsHash"]
    if not re.fullmatch(TAILS_HASH, tails_hash):
        raise Unavailable("tails_unavailable", "The registry names no tails file.")
    if not default_storage.exists(tails_name(tails_hash)):
        location = public["value"]["tailsLocation"]
        network_reads.read_once(location, lambda: fetch_tails(location, tails_hash))
    return default_storage.path(tails_name(tails_hash))


def fetch_tails(location: str, tails_hash: str) -> None:
    """Download a tails file, check its hash and store it. 503 `tails_unavailable`."""
    try:
        answer = http.get(
            location,
            accept="*/*",
            timeout=seconds_left(http.TIMEOUT_SECONDS),
            max_bytes=settings.MAX_TAILS_BYTES,
        )
    except Unavailable as error:
        message = f"The issuer's tails file: {error.message}."
        raise Unavailable("tails_unavailable", message) from None
    found = keys.encode_key(hashlib.sha256(answer.body).digest())
    if answer.status != 200 or not answer.is_complete or found != tails_hash:
        message = "The issuer's tails file is missing, too large or has another hash."
        raise Unavailable("tails_unavailable", message)
    name = tails_name(tails_hash)
    # Save it under another name first: readers must never see half of a file.
    saved = default_storage.save(f"{name}.part", ContentFile(answer.body))
    os.replace(default_storage.path(saved), default_storage.path(name))
