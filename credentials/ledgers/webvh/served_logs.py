"""The versions of logs that were served: they outlive a backup that is restored.

Who has read a log refuses one that is shorter or other than it was. So each version that
is served has a file of its own in the storage, written before the first answer, which
no backup takes and no restore writes.
"""

import json
from functools import lru_cache

from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection

from credentials.ledgers.webvh import own_log
from credentials.ledgers.webvh.rows import WebvhDid

FOLDER = "served_logs"


def note(did: str, log: str) -> None:
    """Record that this version of the log is served. Once in each process it looks."""
    remember(did.split(":")[2], own_log.read_last(log)["versionId"])


@lru_cache(maxsize=10_000)
def remember(scid: str, version_id: str) -> None:
    name = f"{FOLDER}/{scid}/{version_id}"
    if not default_storage.exists(name):
        default_storage.save(name, ContentFile(b""))


def list_names(folder: str, kind: int) -> list[str]:
    """The names in a folder of the storage: of folders (0) or of files (1)."""
    try:
        return default_storage.listdir(folder)[kind]
    except FileNotFoundError:  # before the first one
        return []


def find_forked() -> list[str]:
    """Return the DIDs whose log lacks a version that was served, sorted."""
    if WebvhDid._meta.db_table not in connection.introspection.table_names():
        return []
    forked = []
    for scid in list_names(FOLDER, 0):
        for row in WebvhDid.objects.filter(did__startswith=f"did:webvh:{scid}:"):
            versions = {json.loads(line)["versionId"] for line in row.log.splitlines()}
            if not versions.issuperset(list_names(f"{FOLDER}/{scid}", 1)):
                forked.append(row.did)
    return sorted(forked)


def require_whole() -> None:
    """Raise ImproperlyConfigured if a restore has brought back an older log."""
    if forked := find_forked():
        raise ImproperlyConfigured(
            f"The log of {forked[0]} lacks a version that was served already, as after "
            f"the restore of an older backup ({len(forked)} in all). Readers refuse it, "
            "and with it all credentials of the DID. Restore a newer backup, or the "
            "point in time before the loss."
        )
