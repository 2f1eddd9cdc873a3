"""The versions of logs that were served: they outlive a backup that is restored.

Who has read a log refuses one that is shorter or other than it was. So each version that
is served has a file of its own in the storage, written before the first answer, which
no backup takes and no restore writes. It says which installation has served it, as
several may share a storage.
"""

import logging
from functools import lru_cache

from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import DatabaseError, InterfaceError, connection

from credentials.ledgers.webvh import own_log
from credentials.ledgers.webvh.rows import WebvhDid
from tenants import vault

logger = logging.getLogger(__name__)
FOLDER = "served_logs"
MARK_LETTERS = 16  # of a mark, in the name of a file


def note(did: str, log: str) -> None:
    """Record that this version of the log is served. Once in each process it looks."""
    remember(scid_in(did), own_log.read_last(log)["versionId"])


def scid_in(did: str) -> str:
    return did.split(":")[2]


@lru_cache(maxsize=10_000)
def remember(scid: str, version_id: str) -> None:
    mark = mark_of(scid)
    name = path_of(scid, f"{version_id}_{mark[:MARK_LETTERS]}")
    if not default_storage.exists(name):
        default_storage.save(name, ContentFile(mark.encode()))


def path_of(scid: str, name: str) -> str:
    return f"{FOLDER}/{scid}/{name}"


def mark_of(scid: str) -> str:
    """What only this installation writes in the files of a log: also with other keys."""
    return vault.keyed_digest(f"served log of did:webvh {scid}").hex()


def list_names(scid: str) -> list[str]:
    """The names of the files of a log."""
    try:
        return list(default_storage.listdir(f"{FOLDER}/{scid}")[1])
    except FileNotFoundError:  # before the first one
        return []


def version_in(name: str) -> str:
    return name.partition("_")[0]


def mark_in(name: str) -> str:
    """The beginning of the mark; "" in a name of a former version."""
    # A storage may have added letters to make it another name.
    mark = f"{name}_".split("_")[1]
    return mark if len(mark) == MARK_LETTERS else ""


def list_served(scid: str) -> set[str]:
    """The versions of a log that were served, also by other installations."""
    return set(map(version_in, list_names(scid)))


def is_ours(scid: str, name: str, has_empty: bool = False) -> bool:
    """Whether this installation has written a file. has_empty: or an empty one."""
    mark = mark_of(scid)
    if found := mark_in(name):
        return mark.startswith(found)
    with default_storage.open(path_of(scid, name)) as file:
        content = file.read(len(mark))
    return bool(content == mark.encode() or (has_empty and not content))


def find_forked() -> list[str]:
    """Return the DIDs whose log lacks a version that was served here, sorted.

    A file of another installation does not count: an organization that has moved goes
    on there. An empty one does, which a former version wrote, unless another file tells
    who has served that version.
    """
    forked = []
    rows = WebvhDid.objects.order_by("did").values_list("did", "log")
    for did, log in rows.iterator(chunk_size=100):
        scid, known = scid_in(did), own_log.read_version_ids(log)
        missing = [name for name in list_names(scid) if version_in(name) not in known]
        told = {version_in(name) for name in missing if mark_in(name)}
        if any(is_ours(scid, name, version_in(name) not in told) for name in missing):
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
    return any(is_ours(scid, name) for name in list_names(scid))


def require_whole() -> None:
    """Raise ImproperlyConfigured if a restore has brought back an older log, or none.

    A log is gone only by that: the row of a DID outlives its organization, also where
    that is erased or has moved away. Where there is no DID at all, the storage may be
    out of reach: nothing is served then.
    """
    if WebvhDid._meta.db_table not in connection.introspection.table_names():
        return
    try:
        _require_whole()
    except (ImproperlyConfigured, DatabaseError, InterfaceError):
        raise
    except Exception as error:  # each storage has its own
        if not WebvhDid.objects.exists():
            logger.warning("the storage cannot be read: %s", error)
            return
        raise ImproperlyConfigured(
            f"The storage cannot be read ({type(error).__name__}: {error}), so nothing "
            "tells whether a log of did:webvh is older than what was served. Look at "
            "STORAGE_ROOT or STORAGE_BACKEND."
        ) from error


def _require_whole() -> None:
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
            "loss. For a new installation, give it a storage of its own, or move "
            f"{FOLDER}/ out of this one: docs/operations/backup.md."
        )
