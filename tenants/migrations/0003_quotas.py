"""Accounts have quotas if people made them for themselves.

Only the studio makes owners, so an account with an owner is one of its own. Accounts that staff
made there have no quotas.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from core.database.locks import LockTables

# One statement, as the table of accounts is locked meanwhile.
MARK_ACCOUNTS_OF_THE_STUDIO = """
UPDATE tenants_provider SET has_quotas = true, person_id = made.user_id
FROM (
    SELECT DISTINCT ON (tenant.provider_id) tenant.provider_id, membership.user_id
    FROM tenants_membership AS membership
    JOIN tenants_tenant AS tenant ON tenant.id = membership.tenant_id
    JOIN auth_user AS person ON person.id = membership.user_id
    WHERE membership.role = 'owner' AND NOT tenant.made_by_provider
        AND NOT person.is_staff
    ORDER BY tenant.provider_id, membership.id
) AS made
WHERE tenants_provider.id = made.provider_id
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0002_short_qr_codes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        LockTables("auth_user", "tenants_provider"),
        migrations.AddField(
            model_name="provider",
            name="has_quotas",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Whether the account and its organizations have the limits of QUOTA_….",
            ),
        ),
        migrations.AddField(
            model_name="provider",
            name="person",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.RunSQL(MARK_ACCOUNTS_OF_THE_STUDIO, migrations.RunSQL.noop),
    ]
