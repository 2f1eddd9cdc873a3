from django.db import migrations, models

NAME = "one_live_wallet_per_id"
# An interrupted build leaves an index that is not valid.
DROP_SQL = f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}"
BUILD_SQL = f"""
CREATE UNIQUE INDEX CONCURRENTLY {NAME} ON wallets_wallet (tenant_id, wallet_id)
WHERE deleted_at IS NULL
"""


class Migration(migrations.Migration):
    atomic = False  # the index is built while others write
    dependencies = [
        ("tenants", "0013_erasure"),
        ("wallets", "0003_support_search"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "ALTER TABLE wallets_wallet "
                    "ADD COLUMN IF NOT EXISTS deleted_at timestamp with time zone",
                    "ALTER TABLE wallets_wallet DROP COLUMN deleted_at",
                ),
                migrations.RunSQL(DROP_SQL, migrations.RunSQL.noop),
                migrations.RunSQL(BUILD_SQL, DROP_SQL),
            ],
            state_operations=[
                migrations.AddField(
                    model_name="wallet",
                    name="deleted_at",
                    field=models.DateTimeField(editable=False, null=True),
                ),
                migrations.AddConstraint(
                    model_name="wallet",
                    constraint=models.UniqueConstraint(
                        condition=models.Q(("deleted_at", None)),
                        fields=("tenant", "wallet_id"),
                        name=NAME,
                    ),
                ),
            ],
        ),
    ]
