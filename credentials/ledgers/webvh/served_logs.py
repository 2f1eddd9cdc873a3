"""The versions of logs that were served: they outlive a backup that is restored.

Who has read a log refuses one that is shorter or other than it was. So each version that
is served has a file of its own in the storage, written before the first answer, which
no backup takes and no restore writes.
"""

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
    remember(scid_in(did), own_log.read_last(log)["versionId"])


def scid_in(did: str) -> str:
    return did.split(":")[2]


@lru_cache(maxsize=10_000)
def remember(scid: str, version_id: str) -> None:
    name = f"{FOLDER}/{scid}/{version_id}"
    if not default_storage.exists(name):
        default_storage.save(name, ContentFile(b""))


def list_served(scid: str) -> set[str]:
    """The versions of a log that were served."""
    try:
        names = default_storage.listdir(f"{FOLDER}/{scid}")[1]
    except FileNotFoundError:  # before the first one
        return set()
    # If two processes note a version at once, a storage may give one a name of its own.
    return {name.partition("_")[0] for name in names}


def find_forked() -> list[str]:
    """Return the DIDs whose log lacks a version that was served, sorted."""
    if WebvhDid._meta.db_table not in connection.introspection.table_names():
        return []
    forked = []
    rows = WebvhDid.objects.order_by("did").values_list("did", "log")
    for did, log in rows.iterator(chunk_size=100):
        if list_served(scid_in(did)) - own_log.read_version_ids(log):
            forked.append(did)
    return forked


def find_lost() -> list[str]:
    """Return the SCIDs of logs that were served and of which nothing is left, sorted."""
    try:
        served = set(default_storage.listdir(FOLDER)[0])
    except FileNotFoundError:  # before the first one
        return []
    return sorted(
        served - set(map(scid_in, WebvhDid.objects.values_list("did", flat=True)))
    )


def require_whole() -> None:
    """Raise ImproperlyConfigured if a restore has brought back an older log."""
    if forked := find_forked():
        raise ImproperlyConfigured(
            f"The log of {forked[0]} lacks a version that was served already, as after "
            f"the restore of an older backup ({len(forked)} in all). Readers refuse it, "
            "and with it all credentials of the DID. Restore a newer backup, or the "
            "point in time before the loss: docs/operations/backup.md."
        )
