"""Epochs of the event feed: a restored database begins another history.

What happened after the backup is gone, and what happens next is something else. A
cursor of the time before would skip it, so every cursor has the name of its epoch, and
a restore begins a new one. Before the first restore the name is empty.

A replica that takes over may lack the last transactions, and assigns their numbers
again. Its timeline is another one, which each process sees when it connects, before it
writes (timeline.py). So the table of switches has the number at which each timeline
began, and only cursors behind it are refused. A worker tells each organization once,
also of a restore.
"""

from uuid import UUID, uuid5

from django.db import connection

from core.database import clock
from core.work import transactions
from tenants.models import Tenant
from webhooks.events.emit import emit_event
from webhooks.events.models import Event, FeedSwitch
from webhooks.events.timeline import TIMELINE
from webhooks.events.types import Type

TOLD_AT_ONCE = 200  # organizations, in one transaction
# Without parameters: `manage.py restore` gives them to psql, too.
RENAME_SQL = """
INSERT INTO webhooks_feedepoch (id, name, began_at)
VALUES (1, gen_random_uuid(), now())
ON CONFLICT (id) DO UPDATE SET name = excluded.name, began_at = excluded.began_at
"""
# Where the timeline may not be read, there are no switches.
FORGET_SWITCHES_SQL = f"""
DO $$ BEGIN
    IF to_regclass('webhooks_feedswitch') IS NOT NULL THEN
        DELETE FROM webhooks_feedswitch;
        INSERT INTO webhooks_feedswitch
            (id, number, timeline, first_transaction, began_at, since)
        SELECT gen_random_uuid(), 0, {TIMELINE},
            pg_snapshot_xmax(pg_current_snapshot())::text::bigint, clock_timestamp(),
            (SELECT created_at FROM webhooks_event ORDER BY id DESC LIMIT 1);
    END IF;
EXCEPTION WHEN insufficient_privilege OR feature_not_supported THEN
    DELETE FROM webhooks_feedswitch;
END $$
"""
# Events of another server may have higher numbers than this one has assigned. Then all
# are moved below 1, in their order: before every event that this server will write.
RENUMBER_SQL = """
UPDATE webhooks_event SET transaction_id = transaction_id - newest.number
FROM (SELECT max(transaction_id) AS number FROM webhooks_event) newest
WHERE newest.number >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint
"""
BEGIN_SQL = (RENAME_SQL, FORGET_SWITCHES_SQL, RENUMBER_SQL)
# A backup of a release before this one may have no epochs. Then the operator begins one
# after `manage.py migrate`.
RESTORED_SQL = (
    f"""
DO $$ BEGIN
    IF to_regclass('webhooks_feedepoch') IS NOT NULL THEN {RENAME_SQL}; END IF;
END $$
""",
    FORGET_SWITCHES_SQL,
    RENUMBER_SQL,
)


def has_epochs() -> bool:
    """Whether the database is of a release that has epochs."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('webhooks_feedepoch') IS NOT NULL")
        return cursor.fetchone()[0]


@transactions.atomic()
def begin_epoch() -> None:
    """Refuse all cursors that were given before now."""
    with connection.cursor() as cursor:
        for statement in BEGIN_SQL:
            cursor.execute(statement)


def tell_organizations() -> int:
    """Write `database_restored` for some of those that do not know. Return how many.

    The row of the switch keeps who was told, so each organization is told once,
    whichever worker is killed meanwhile.
    """
    with transactions.atomic():
        rows = FeedSwitch.objects.select_for_update(skip_locked=True)
        switch = rows.filter(told_at=None).order_by("number").first()
        if switch is None:
            return 0
        untold = Tenant.objects.filter(
            created_at__lt=switch.began_at, deleted_at=None
        ).order_by("pk")
        if switch.told_until:
            untold = untold.filter(pk__gt=switch.told_until)
        found = list(untold.values_list("pk", flat=True)[:TOLD_AT_ONCE])
        for tenant in found:
            emit_restored(tenant, switch)
        if found:
            switch.told_until = found[-1]
        else:
            switch.told_at = clock.now()
        switch.save(update_fields=["told_until", "told_at"])
        return len(found)


def emit_restored(tenant: UUID, switch: FeedSwitch) -> None:
    event = Event(
        tenant_id=tenant,
        type=Type.DATABASE_RESTORED,
        object_type="database",
        object_key=uuid5(switch.pk, str(tenant)),
        object_id=str(switch.pk),
        sequence=1,
    )
    since = f"{switch.since:%Y-%m-%dT%H:%M:%S.%fZ}" if switch.since else None
    emit_event(event, {"since": since})
