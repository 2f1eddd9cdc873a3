"""Tails files and pictures in an object store that speaks S3. # slow

The store is moto's server; the class is that of django-storages, as an operator
installs it.
"""

import json

import boto3
import pytest
from django.conf import settings as product
from django.core.files.storage import default_storage
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

from agency.ops import stored_files
from credentials.ledgers.webvh import served_logs
from credentials.models import WebvhDid
from tests.agency.ops.test_backups import (
    contents_of,
    empty_database,
    manage,
)
from tests.agency.ops.test_moving import make_college
from tests.support.own_webvh import on_webvh, read_log, row_of
from tests.support.processes import database_of_test

__all__ = ["empty_database"]  # a fixture
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
BUCKET = "agency"
BACKEND = "storages.backends.s3.S3Storage"


@pytest.fixture(autouse=True)
def options(settings, monkeypatch):
    """STORAGE_OPTIONS for a bucket of a server on this machine."""
    s3_backends.reset()  # moto keeps them beyond its server
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    found = {
        "bucket_name": BUCKET,
        "endpoint_url": f"http://{host}:{port}",
        "region_name": "eu-central-1",
        "access_key": "agency",
        "secret_key": "not-a-secret",
        "querystring_auth": False,
    }
    settings.STORAGES = product.STORAGES | {
        "default": {"BACKEND": BACKEND, "OPTIONS": found}
    }
    bucket_of(found).create(
        CreateBucketConfiguration={"LocationConstraint": found["region_name"]}
    )
    monkeypatch.setattr(stored_files, "last_finding", stored_files.Finding(None, 0))
    yield found
    server.stop()


@pytest.fixture
def college(transactional_db, stored_keys, settings, options):
    """Its files go into the bucket at once."""
    settings.REVOCATION_FIRST_REGISTRY_SIZE = settings.REVOCATION_REGISTRY_SIZE = 4
    return make_college()


def bucket_of(options, name=BUCKET):
    return boto3.resource(
        "s3",
        endpoint_url=options["endpoint_url"],
        region_name=options["region_name"],
        aws_access_key_id=options["access_key"],
        aws_secret_access_key=options["secret_key"],
    ).Bucket(name)


def objects_in(bucket):
    return {one.key: one.get()["Body"].read() for one in bucket.objects.all()}


def run(options, folder, *arguments, **given):
    """Run a command with this store; its STORAGE_ROOT stays empty."""
    store = {"STORAGE_BACKEND": BACKEND, "STORAGE_OPTIONS": json.dumps(options)}
    code, said = manage(folder / "unused", *arguments, **store | given)
    assert not (folder / "unused").exists()
    return code, said


def test_what_is_stored_is_served(college, options):
    stored = objects_in(bucket_of(options))
    assert {name.split("/")[0] for name in stored} == {"tails", "assets"}
    assert stored.keys() == stored_files.needed_files()
    for name, content in stored.items():
        path = name if name.startswith("tails/") else f"assets/{name.split('/')[1]}"
        answer = college.client.get(f"/{path}")
        assert b"".join(answer) == content


def test_what_was_served_of_a_did_webvh_is_found(
    transactional_db, stored_keys, settings
):
    served_logs.remember.cache_clear()
    faber = on_webvh(settings)
    older = row_of(faber)
    faber.post("/tenants/webvhDid/rotation")
    read_log(faber)
    served_logs.require_whole()
    assert not served_logs.find_lost()
    WebvhDid.objects.update(log=older.log, versions=1)  # as an older backup has it
    assert served_logs.find_forked() == [older.did]
    WebvhDid.objects.all().delete()
    assert served_logs.find_lost() == [served_logs.scid_in(older.did)]


def test_a_missing_tails_file_is_found(college, options, tmp_path, client):
    [tails] = [name for name in objects_in(bucket_of(options)) if "tails/" in name]
    ready = client.get("/health/ready").json()
    assert tails not in json.dumps(ready)
    default_storage.delete(tails)
    stored_files.last_finding = stored_files.Finding(None, 0)
    assert tails in json.dumps(client.get("/health/ready").json())
    code, said = run(options, tmp_path, "doctor")
    assert code and tails in said


def test_a_backup_is_verified_and_restored_into_another_bucket(
    college, options, empty_database, tmp_path
):
    backup, stored = tmp_path / "monday", objects_in(bucket_of(options))
    code, said = run(options, tmp_path, "backup", backup)
    assert code == 0, said
    code, said = run(options, tmp_path, "verify_backup", backup)
    assert code == 0 and "everything in it opens" in said, said
    other = options | {"bucket_name": "restored"}
    bucket_of(options, "restored").create(
        CreateBucketConfiguration={"LocationConstraint": options["region_name"]}
    )
    given = {"DATABASE_URL": empty_database}
    code, said = run(other, tmp_path, "restore", backup, **given)
    assert code == 0, said
    assert objects_in(bucket_of(options, "restored")) == stored
    assert (
        contents_of(empty_database)["wallets_key"]
        == contents_of(database_of_test())["wallets_key"]
    )


def test_a_file_that_was_missing_at_the_backup_fails_its_verification(
    college, options, tmp_path
):
    [tails] = [name for name in objects_in(bucket_of(options)) if "tails/" in name]
    default_storage.delete(tails)
    code, said = run(options, tmp_path, "backup", tmp_path / "b")
    assert code == 0 and f"so in the backup: {tails}" in said, said
    code, said = run(options, tmp_path, "verify_backup", tmp_path / "b")
    assert code == 1 and tails in said
