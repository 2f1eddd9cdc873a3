"""Epochs of the event feed: a restored database begins another history.

What happened after the backup is gone, and what happens next is something else. A
cursor of the time before would skip it, so every cursor has the name of its epoch, and
a restore begins a new one. Before the first restore the name is empty.
"""

from django.db import connection

from core.work import transactions

# Without parameters: `manage.py restore` gives them to psql, too.
RENAME_SQL = """
INSERT INTO webhooks_feedepoch (id, name, began_at)
VALUES (1, gen_random_uuid(), now())
ON CONFLICT (id) DO UPDATE SET name = excluded.name, began_at = excluded.began_at
"""
# Events of another server may have higher numbers than this one has assigned. Then all
# are moved below 1, in their order: before every event that this server will write.
RENUMBER_SQL = """
UPDATE webhooks_event SET transaction_id = transaction_id - newest.number
FROM (SELECT max(transaction_id) AS number FROM webhooks_event) newest
WHERE newest.number >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint
"""
BEGIN_SQL = (RENAME_SQL, RENUMBER_SQL)
# A backup of a release before this one may have no epochs. Then the operator begins one
# after `manage.py migrate`.
RESTORED_SQL = (
    f"""
DO $$ BEGIN
    IF to_regclass('webhooks_feedepoch') IS NOT NULL THEN {RENAME_SQL}; END IF;
END $$
""",
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
