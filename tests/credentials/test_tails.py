"""Tails files are read through the storage, wherever that is."""

import tempfile
from pathlib import Path

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.test import Client

from agency.ops import stored_files
from core.errors import Unavailable
from core.work import network_reads
from credentials import tails
from credentials.models import PublishedObject
from credentials.tails import needed_tails, tails_path

NOW = {
    "attributes": [{"policyName": "name"}],
    "revocationRequirement": {"validNow": True},
}


@pytest.fixture(autouse=True)
def object_store(settings, monkeypatch, tmp_path):
    """A storage without paths, as S3, and no copies of this host."""
    backend = {"BACKEND": "django.core.files.storage.InMemoryStorage"}
    settings.STORAGES = settings.STORAGES | {"default": backend}
    settings.REVOCATION_FIRST_REGISTRY_SIZE = settings.REVOCATION_REGISTRY_SIZE = 4
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(stored_files, "CHECK_SECONDS", 0)
    monkeypatch.setattr(stored_files, "last_finding", stored_files.Finding(None, 0))
    return tmp_path


@pytest.fixture
def degree(faber):
    return faber.defines("name", "year", supportRevocation=True)


def registry():
    return PublishedObject.objects.get(kind=PublishedObject.Kind.REGISTRY).body


def test_a_holder_proves_with_a_file_of_an_object_store(faber, degree, object_store):
    alice = faber.hosts()
    alice.receives(faber, degree, {"name": "Alice", "year": "7"})
    asked = faber.asks(alice, **NOW)
    alice.auto_selects()
    path = f"/verifications/{asked['verificationId']}"
    assert faber.get(path)["isValid"] is True
    [copy] = object_store.glob("agency-tails-*/*")
    assert f"tails/{copy.name}" in needed_tails()
    served = Client().get(f"/tails/{copy.name}")
    assert b"".join(served.streaming_content) == copy.read_bytes()


def test_a_hosts_copy_is_used_again_but_nobody_elses_folder(degree, object_store):
    path = tails_path(registry())
    default_storage.delete(f"tails/{registry()['value']['tailsHash']}")
    assert tails_path(registry()) == path
    [folder] = object_store.glob("agency-tails-*")
    folder.rename(object_store / "theirs")
    folder.symlink_to(object_store / "theirs")
    with pytest.raises(Unavailable, match="not a folder of this user"):
        tails_path(registry())


def test_a_damaged_file_is_not_proven_with_and_a_lost_one_named(degree, object_store):
    assert Client().get("/health/ready").json()["tails"] == "ok"
    [name] = needed_tails()
    default_storage.delete(name)
    answer = Client().get("/health/ready")
    assert answer.status_code == 200
    assert answer.json()["tails"] == (
        f"degraded: 1 tails files are missing in the storage, as {name}: "
        "restore them from a backup"
    )
    default_storage.save(name, ContentFile(b"x"))
    with pytest.raises(Unavailable, match="damaged"):
        tails_path(registry())
    assert list(object_store.glob("agency-tails-*/*")) == []


def test_files_are_read_each_by_its_hash(transactional_db, object_store, monkeypatch):
    contents = {}
    for data in (b"one", b"two"):
        path = object_store / data.decode()
        path.write_bytes(data)
        contents[tails.hash_of(path)] = data

    def fetch(location, tails_hash):
        file = ContentFile(contents[tails_hash])
        default_storage.save(tails.tails_name(tails_hash), file)

    monkeypatch.setattr(tails, "fetch_tails", fetch)
    location = "https://issuer.example/tails"

    @network_reads.atomic_with_reads
    def read_all():
        values = [{"tailsHash": one, "tailsLocation": location} for one in contents]
        paths = [tails_path({"value": value}) for value in values]
        return [Path(path).read_bytes() for path in paths]

    assert read_all() == [b"one", b"two"]
