"""No status list is folded while a process may run, or start, that cannot read it."""

from datetime import timedelta

import pytest
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from agency.ops import former_version, tasks
from agency.ops.models import Heartbeat
from core.version import describe_version
from credentials.models import StatusList
from tenants.lifecycle.provisioning import LOCAL, require_network
from tests.factories import HeartbeatFactory, StatusListFactory
from tests.support.aging import age

pytestmark = pytest.mark.django_db


def migrated(days):
    app, name = former_version.MIGRATION
    rows = MigrationRecorder.Migration.objects.filter(app=app, name=name)
    assert rows.update(applied=timezone.now() - timedelta(days=days)) == 1


@pytest.fixture
def folds():
    """Call the task. Return how many lists it has looked at."""
    for moment in (1, 2, 3):
        StatusListFactory(
            network=require_network(LOCAL), registry_id="one", timestamp=moment
        )
    age(StatusList.objects.all(), 30)

    def run():
        tasks.fold_status_lists()
        return StatusList.objects.exclude(full_at=None).count()

    return run


def test_nothing_is_folded_within_a_week_after_the_migration(folds):
    migrated(days=6)
    assert folds() == 0
    migrated(days=8)
    assert folds() == 2


def test_nothing_is_folded_while_a_process_of_another_build_lives(folds):
    migrated(days=8)
    HeartbeatFactory(version=describe_version())
    former = HeartbeatFactory(version="0.2.0+0123456789ab")
    assert folds() == 0
    ended = timezone.now() - timedelta(minutes=5)
    Heartbeat.objects.filter(pk=former.pk).update(seen_at=ended)
    assert folds() == 2


def test_the_migration_is_one_of_ours():
    assert former_version.MIGRATION in MigrationLoader(None).disk_migrations
