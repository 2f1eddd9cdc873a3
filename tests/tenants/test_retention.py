"""Expired sessions and pictures without an owner go, and nothing that is in use."""

import os
from datetime import timedelta

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.sessions.models import Session
from django.core.files.base import ContentFile
from django.core.files.storage import FileSystemStorage, default_storage
from django.utils import timezone

from core.telemetry.metrics import registry
from core.work import retention as batches
from tenants import audit, retention, tasks
from tenants.lifecycle.provisioning import remove_organization
from tenants.models import ApiKey, Asset
from tenants.pictures import storage_path
from tests.factories import ProviderFactory, UserFactory
from tests.support.people import Organization
from tests.support.pictures import picture, storage, uploads

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["storage"]  # the fixture: files of each test in a folder of their own
DAY = 86_400


@pytest.fixture
def asset(faber):
    uploads(faber, picture())
    return Asset.objects.get()


def age_files(days):
    """Whatever there is, is older."""
    then = timezone.now().timestamp() - days * DAY
    for name in default_storage.listdir("assets")[1]:
        os.utime(default_storage.path(storage_path(name)), (then, then))
    Asset.objects.update(created_at=timezone.now() - timedelta(days=days))


def files():
    return set(default_storage.listdir("assets")[1])


def stray(name="stray.png"):
    """What an upload leaves that was cut off before it was noted."""
    default_storage.save(storage_path(name), ContentFile(b"x"))
    return name


def expired(key, days):
    """Store a session that ended so many days ago."""
    then = timezone.now() - timedelta(days)
    Session.objects.create(session_key=key, expire_date=then)


def test_expired_sessions_go_and_live_ones_stay(client, transactional_db):
    client.force_login(UserFactory())
    expired("old", 1)
    tasks.delete_old_sessions_and_pictures()
    assert Session.objects.get().session_key == client.session.session_key


def test_sessions_go_in_batches_the_oldest_first(transactional_db, monkeypatch):
    monkeypatch.setattr(batches, "BATCH_ROWS", 2)
    monkeypatch.setattr(batches, "MAX_BATCHES", 2)
    for age in range(1, 8):
        expired(f"{9 - age}", age)
    assert retention.delete_expired_sessions() == 4
    left = Session.objects.order_by("pk").values_list("session_key", flat=True)
    assert list(left) == ["6", "7", "8"]
    assert retention.delete_expired_sessions() == 3


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_picture_stays_while_its_account_is_used(faber, asset, is_removed):
    if is_removed:  # its keys work on
        remove_organization(faber.tenant, by=audit.SYSTEM)
    else:
        ApiKey.objects.all().delete()
    age_files(400)
    tasks.delete_old_sessions_and_pictures()
    assert Asset.objects.get() == asset and files() == {asset.name}


def test_a_picture_goes_when_nobody_can_use_its_account(faber, asset):
    other = Organization("Other")
    uploads(other, picture())
    remove_organization(faber.tenant, by=audit.SYSTEM)
    for key in faber.tenant.provider.keys.all():
        key.revoke()
    age_files(2)
    tasks.delete_old_sessions_and_pictures()
    assert Asset.objects.get().provider == other.tenant.provider
    assert files() == {Asset.objects.get().name}


def test_what_was_just_uploaded_stays(faber, asset):
    remove_organization(faber.tenant, by=audit.SYSTEM)
    ApiKey.objects.all().delete()
    stray()
    age_files(0.9)
    tasks.delete_old_sessions_and_pictures()
    assert Asset.objects.get() == asset and files() == {asset.name, "stray.png"}


def test_a_file_that_no_row_names_goes(faber, storage):
    assert retention.delete_orphaned_files() == 0, "before the first upload"
    uploads(faber, picture())
    asset = Asset.objects.get()
    stray()
    age_files(2)
    assert retention.delete_orphaned_files() == 1
    assert files() == {asset.name}


def test_many_files_are_looked_up_in_batches(
    asset, monkeypatch, django_assert_num_queries
):
    monkeypatch.setattr(batches, "BATCH_ROWS", 2)
    monkeypatch.setattr(retention, "BATCH_ROWS", 2)
    for number in range(4):
        stray(f"{number}.png")
    age_files(2)
    with django_assert_num_queries(3):
        assert retention.delete_orphaned_files() == 4
    assert files() == {asset.name}


def test_a_file_that_another_worker_deletes_is_no_failure(asset, monkeypatch):
    stray()
    age_files(2)
    modified = FileSystemStorage.get_modified_time

    def first_gone(self, path):
        default_storage.delete(path)
        return modified(self, path)

    monkeypatch.setattr(FileSystemStorage, "get_modified_time", first_gone)
    assert retention.delete_orphaned_files() == 0


def test_deleted_sessions_and_pictures_are_counted(transactional_db, asset):
    name = "agency_retention_deleted_total"

    def counted():
        tables = ("files of pictures", "tenants.Asset")
        labels = [{"table": table} for table in tables]
        return [registry.get_sample_value(name, one) or 0 for one in labels]

    before = counted()
    Asset.objects.update(provider=ProviderFactory())
    age_files(2)
    tasks.delete_old_sessions_and_pictures()
    assert counted() == [number + 1 for number in before]


def test_the_log_of_the_admin_is_kept_unless_the_setting_says_how_long(
    transactional_db, settings
):
    staff = UserFactory()
    for age in (29, 31):
        done = {"user": staff, "action_flag": CHANGE}
        then = timezone.now() - timedelta(days=age)
        LogEntry.objects.create(action_time=then, **done)
    for days, left in ((0, 2), (30, 1)):
        settings.ADMIN_LOG_RETENTION_DAYS = days
        tasks.delete_old_audit_entries()
        assert LogEntry.objects.count() == left
