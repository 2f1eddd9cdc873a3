"""Whether a process of the version before may read what this one stores anew.

That version takes a status list that is folded for one that is not there. So nothing is
folded while a process of another build beats, nor within a week after the migration, in
which operators may go back.
"""

from datetime import timedelta

from django.db.migrations.recorder import MigrationRecorder
from django.db.models.functions import Now

from agency.ops.heartbeats import is_alive
from agency.ops.models import Heartbeat
from core.version import describe_version

MIGRATION = ("credentials", "0034_folded_status_lists")
GOING_BACK = timedelta(days=7)


def may_run() -> bool:
    app, name = MIGRATION
    others = Heartbeat.objects.filter(is_alive()).exclude(version=describe_version())
    fresh = MigrationRecorder.Migration.objects.filter(
        app=app, name=name, applied__gt=Now() - GOING_BACK
    )
    return others.exists() or fresh.exists()
