"""A stored file is complete and on the disk before anybody can name it."""

import os

import pytest
from django.core.files.base import ContentFile

from core.storage import DurableStorage


@pytest.fixture
def storage(tmp_path):
    return DurableStorage(location=tmp_path)


def content_of(storage, name):
    with storage.open(name) as file:
        return file.read()


def files_in(folder):
    return {
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    }


def test_a_file_is_stored_under_its_own_name_and_everybody_may_read_it(
    storage, tmp_path
):
    assert storage.save("tails/abc", ContentFile(b"one")) == "tails/abc"
    assert storage.save("tails/abc", ContentFile(b"two")) == "tails/abc"
    assert content_of(storage, "tails/abc") == b"two"
    assert files_in(tmp_path) == {"tails/abc"}
    assert (tmp_path / "tails" / "abc").stat().st_mode & 0o777 == 0o644


def test_file_and_folder_are_on_the_disk_when_it_has_its_name(
    storage, tmp_path, monkeypatch
):
    synced, fsync = [], os.fsync

    def recorded(descriptor):
        target = os.readlink(f"/proc/self/fd/{descriptor}")
        synced.append((os.path.basename(target), files_in(tmp_path) == {"tails/abc"}))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    storage.save("tails/abc", ContentFile(b"one"))
    [(unfinished, had_name), folder] = synced
    assert unfinished != "abc" and not had_name
    assert folder == ("tails", True)


def test_a_file_that_breaks_off_leaves_the_old_one(storage, tmp_path):
    class Broken(ContentFile):
        def chunks(self, chunk_size=None):
            yield b"half"
            raise OSError("the connection broke")

    storage.save("tails/abc", ContentFile(b"one"))
    with pytest.raises(OSError, match="broke"):
        storage.save("tails/abc", Broken(b""))
    assert content_of(storage, "tails/abc") == b"one"
    assert files_in(tmp_path) == {"tails/abc"}
