"""A new column for the choice that may be missing; the former one is as before.

Version 0.1.0 needs `retry_unconfirmed` with a value, and still runs beside these
tables. The column is dropped by the release after this one.
"""

from django.db import migrations, models

ADD = """
ALTER TABLE webhooks_webhook ADD COLUMN retry_unanswered boolean NULL;
UPDATE webhooks_webhook SET retry_unanswered = retry_unconfirmed
WHERE retry_unconfirmed IS NOT NULL;
UPDATE webhooks_webhook SET retry_unconfirmed = true WHERE retry_unconfirmed IS NULL;
ALTER TABLE webhooks_webhook ALTER COLUMN retry_unconfirmed SET DEFAULT true;
ALTER TABLE webhooks_webhook ALTER COLUMN retry_unconfirmed SET NOT NULL
"""
DROP = """
ALTER TABLE webhooks_webhook ALTER COLUMN retry_unconfirmed DROP NOT NULL;
ALTER TABLE webhooks_webhook ALTER COLUMN retry_unconfirmed DROP DEFAULT;
UPDATE webhooks_webhook SET retry_unconfirmed = retry_unanswered;
ALTER TABLE webhooks_webhook DROP COLUMN retry_unanswered
"""


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks", "0006_caused_by_request"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(ADD, DROP)],
            state_operations=[
                migrations.AlterField(
                    model_name="webhook",
                    name="retry_unconfirmed",
                    field=models.BooleanField(
                        db_column="retry_unanswered", null=True
                    ),
                ),
            ],
        ),
    ]
