"""The versions of logs that were served: they outlive a backup that is restored.

Who has read a log refuses one that is shorter or other than it was. So each version that
is served has a file of its own in the storage, written before the first answer, which
no backup takes and no restore writes. It says which installation has served it, as
several may share a storage.
"""

from functools import lru_cache

from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection

from credentials.ledgers.webvh import own_log
from credentials.ledgers.webvh.rows import WebvhDid
from tenants import vault

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
        default_storage.save(name, ContentFile(mark_of(scid)))


def mark_of(scid: str) -> bytes:
    """What only this installation writes in the files of a log: also with other keys."""
    return vault.keyed_digest(f"served log of did:webvh {scid}").hex().encode()


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


def is_marked(scid: str) -> bool:
    """Whether this installation has served a version of the log."""
    mark = mark_of(scid)
    for name in default_storage.listdir(f"{FOLDER}/{scid}")[1]:
        with default_storage.open(f"{FOLDER}/{scid}/{name}") as file:
            if file.read(len(mark)) == mark:
                return True
    return False


def require_whole() -> None:
    """Raise ImproperlyConfigured if a restore has brought back an older log, or none.

    A log is gone only by that: the row of a DID outlives its organization, also where
    that is erased or has moved away. Where there is no DID at all the storage is not
    asked, as it may be out of reach.
    """
    has_table = WebvhDid._meta.db_table in connection.introspection.table_names()
    if not has_table or not WebvhDid.objects.exists():
        return
    if forked := find_forked():
        raise ImproperlyConfigured(
            f"The log of {forked[0]} lacks a version that was served already, as after "
            f"the restore of an older backup ({len(forked)} in all). Readers refuse it, "
            "and with it all credentials of the DID. Restore a newer backup, or the "
            "point in time before the loss: docs/operations/backup.md."
        )
    if gone := [scid for scid in find_lost() if is_marked(scid)]:
        raise ImproperlyConfigured(
            f"did:webvh:{gone[0]} was served already and is not in the database, as "
            f"after the restore of an older backup ({len(gone)} in all). Nothing of it "
            "can be proven. Restore a newer backup, or the point in time before the "
            "loss: docs/operations/backup.md."
        )
