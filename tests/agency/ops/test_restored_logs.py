"""The commands of a restore, where a newer log of a did:webvh was served since. # slow"""

import shutil

import pytest
from django.db import connection

from credentials.ledgers.webvh import served_logs
from credentials.ledgers.webvh.refusals import Refused
from credentials.models import WebvhDid
from tests.agency.ops.test_backups import back_up, manage
from tests.support.own_webvh import HOST, on_webvh, read_all, read_log, row_of
from tests.support.people import Organization
from tests.support.pictures import storage

__all__ = ["storage"]  # the fixture: files of each test in a folder of their own
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
PUBLIC = {"PUBLIC_URL": f"https://{HOST}", "ALLOWED_HOSTS": HOST}
REFUSED = "lacks a version that was served"


@pytest.fixture
def faber(settings, storage, stored_keys):
    served_logs.remember.cache_clear()
    faber = on_webvh(settings)
    faber.defines("name", supportRevocation=True)
    read_log(faber)
    return faber


def restore(storage, backup):
    connection.close()
    connection.close_pool()
    code, said = manage(storage, "restore", backup, "--replace-database", **PUBLIC)
    assert code == 0, said


def start(storage):
    """The first process of an installation, which only delivers what is due, and ends."""
    return manage(storage, "deliver", **PUBLIC)


def findings(storage):
    _, said = manage(storage, "doctor", "--starting", **PUBLIC)
    return said


def test_last_nights_log_does_not_start_and_the_newer_backup_does(
    faber, storage, tmp_path_factory
):
    last_night = back_up(storage, tmp_path_factory)
    assert not list(last_night.rglob("*served_logs*"))
    faber.post("/tenants/webvhDid/rotation", {"compromised": True})
    known = read_log(faber)
    this_morning = back_up(storage, tmp_path_factory)

    restore(storage, last_night)
    assert row_of(faber).versions == 1
    code, said = start(storage)
    assert code and "Agency does not start" in said and REFUSED in said
    assert "error served_logs: The log of did:webvh:" in findings(storage)
    code, said = manage(storage, "migrate", **PUBLIC)
    assert code and "agency.E004" in said

    restore(storage, this_morning)
    code, said = start(storage)
    assert code == 0, said
    assert "served_logs" not in findings(storage)
    assert read_log(faber, known).versions == 2 and read_all(faber)


def test_without_a_newer_backup_the_older_log_is_served_if_the_operator_says_so(
    faber, storage, tmp_path_factory
):
    """As docs/operations/backup.md says: then who has read the newer one refuses it."""
    last_night = back_up(storage, tmp_path_factory)
    faber.post("/tenants/webvhDid/rotation", {"compromised": True})
    known = read_log(faber)
    restore(storage, last_night)
    scid = served_logs.scid_in(known.document["id"])
    shutil.move(storage / "served_logs" / scid, tmp_path_factory.mktemp("moved"))
    served_logs.remember.cache_clear()
    code, said = start(storage)
    assert code == 0, said
    with pytest.raises(Refused) as refused:
        read_log(faber, known)
    assert refused.value.code == "did_log_forked"
    faber.post("/tenants/webvhDid/end")
    assert start(storage)[0] == 0


def test_a_log_that_nobody_has_read_since_is_continued(
    faber, storage, tmp_path_factory
):
    """Then no reader knows more than the backup: the restore takes nothing away."""
    known = read_log(faber)
    last_night = back_up(storage, tmp_path_factory)
    faber.post("/tenants/webvhDid/rotation")
    restore(storage, last_night)
    code, said = start(storage)
    assert code == 0, said
    faber.post("/tenants/webvhDid/rotation", {"compromised": True})
    assert read_log(faber, known).versions == 2 and read_all(faber)


def test_another_log_of_the_same_length_does_not_start(
    faber, storage, tmp_path_factory
):
    last_night = back_up(storage, tmp_path_factory)
    faber.post("/tenants/webvhDid/rotation")
    read_log(faber)
    restore(storage, last_night)
    faber.post("/tenants/webvhDid/rotation")
    assert row_of(faber).versions == 2
    code, said = start(storage)
    assert code and REFUSED in said


def test_a_did_that_the_backup_lacks_does_not_start(faber, storage, tmp_path_factory):
    before = back_up(storage, tmp_path_factory)
    acme = Organization("Acme", network_id="webvh")
    read_log(acme)
    scid = served_logs.scid_in(row_of(acme).did)
    this_morning = back_up(storage, tmp_path_factory)

    restore(storage, before)
    code, said = start(storage)
    assert code and f"did:webvh:{scid} was served already" in said
    restore(storage, this_morning)
    assert start(storage)[0] == 0

    restore(storage, before)
    shutil.move(storage / "served_logs" / scid, tmp_path_factory.mktemp("moved"))
    assert start(storage)[0] == 0


def test_the_first_did_that_the_backup_lacks_does_not_start(
    faber, storage, tmp_path_factory
):
    kept = WebvhDid.objects.get()
    WebvhDid.objects.all().delete()
    before = back_up(storage, tmp_path_factory)
    kept.save(force_insert=True)
    read_log(faber)
    restore(storage, before)
    scid = served_logs.scid_in(kept.did)
    assert f"did:webvh:{scid} was served" in findings(storage)
    code, said = start(storage)
    assert code and f"did:webvh:{scid} was served already" in said


def test_the_storage_is_no_part_of_the_restore(faber, storage, tmp_path_factory):
    """On a new disk nothing is known of what was served, and nothing can be refused."""
    backup = back_up(storage, tmp_path_factory)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    restore(elsewhere, backup)
    assert not (elsewhere / "served_logs").exists()
    assert start(elsewhere)[0] == 0
