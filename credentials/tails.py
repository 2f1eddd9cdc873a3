"""Tails files of revocation registries, stored by their hash and never changed."""

import hashlib
import os
import re
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from django.conf import settings
from django.core.files.base import ContentFile, File
from django.core.files.storage import default_storage
from django.db.models import Exists, OuterRef, Q
from django.db.models.fields.json import KT

from core.errors import Unavailable
from core.net import http
from core.work import network_reads
from core.work.waiting import seconds_left
from credentials.ledgers.published import PublishedObject
from credentials.ledgers.webvh.own_did import host_of
from credentials.ledgers.webvh.rows import WebvhDid
from credentials.models.registry import RevocationRegistry
from tenants.models import Network
from wallets import keys
from wallets.anoncreds.objects import RegistryBody

TAILS_FOLDER = "tails/"
TAILS_HASH = r"[1-9A-HJ-NP-Za-km-z]{40,50}"


def tails_name(tails_hash: str) -> str:
    """The name of the file in the storage that all processes share."""
    return f"{TAILS_FOLDER}{tails_hash}"


def tails_url(tails_hash: str, issuer_did: str) -> str:
    """The address of a file that was made here; for a did:webvh on its own host."""
    host = host_of(issuer_did)
    base = f"https://{host}" if host else settings.PUBLIC_URL
    return f"{base}/tails/{tails_hash}"


def needed_tails() -> set[str]:
    """The names of the files of all registries that were made here.

    Also of deleted organizations: their credentials are still proven.
    """
    rows = RevocationRegistry.objects.filter(registry_id=OuterRef("object_id"))
    made_here = Q(network__kind=Network.Kind.LOCAL) | Q(Exists(rows))
    # A backup before an upgrade finds the tables of the release before, without these.
    if Network.objects.filter(kind=Network.Kind.WEBVH).exists():
        made_here |= Q(Exists(WebvhDid.objects.filter(did=OuterRef("issuer"))))
    registries = PublishedObject.objects.alias(issuer=KT("body__issuerId")).filter(
        made_here, kind=PublishedObject.Kind.REGISTRY
    )
    hashes = registries.values_list("body__value__tailsHash", flat=True)
    return {tails_name(tails_hash) for tails_hash in hashes}


def hash_of(path: Path) -> str:
    """The hash of a tails file, which should be its name."""
    with path.open("rb") as file:
        return keys.encode_key(hashlib.file_digest(file, "sha256").digest())


def store_tails(source: Path, tails_hash: str) -> None:
    """Copy a file that was made here to the storage, from which it is also served."""
    if default_storage.exists(tails_name(tails_hash)):
        return
    with source.open("rb") as file:
        default_storage.save(tails_name(tails_hash), File(file))


def tails_path(public: RegistryBody) -> str:
    """The path of a local copy of a registry's tails file, for the library.

    The file comes from the storage or, if that does not have it, from its issuer. 503
    `tails_unavailable`, also if it does not have the registry's hash.
    """
    tails_hash = public["value"]["tailsHash"]
    if not re.fullmatch(TAILS_HASH, tails_hash):
        raise Unavailable("tails_unavailable", "The registry names no tails file.")
    path = copies_folder() / tails_hash
    if not path.exists():
        if not default_storage.exists(tails_name(tails_hash)):
            location = public["value"]["tailsLocation"]
            name = ("tails", tails_hash, location)
            network_reads.read_outside_transaction(
                name, lambda: fetch_tails(location, tails_hash)
            )
        copy_tails(path)
    return str(path)


def copies_folder() -> Path:
    """The folder of this host's copies, which may be emptied at any time.

    Only this user can write there: it is in the folder for temporary files, where
    others could have made one of that name.
    """
    folder = Path(tempfile.gettempdir(), f"agency-tails-{os.geteuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        message = f"{folder} is not a folder of this user."
        raise Unavailable("tails_unavailable", message)
    return folder


def copy_tails(path: Path) -> None:
    """Copy a tails file from the storage. 503 `tails_unavailable`."""
    with (
        default_storage.open(tails_name(path.name)) as source,
        tempfile.NamedTemporaryFile(dir=path.parent) as target,
    ):
        shutil.copyfileobj(source, target)
        target.flush()
        if hash_of(Path(target.name)) != path.name:
            message = "The stored tails file is damaged: restore it from a backup."
            raise Unavailable("tails_unavailable", message)
        with suppress(FileExistsError):  # another process was faster
            os.link(target.name, path)


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
    default_storage.save(tails_name(tails_hash), ContentFile(answer.body))
