"""Accounts have quotas if people made them for themselves.

Only the studio makes owners, so an account with an owner is one of its own. Accounts that staff
made there have no quotas.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


def mark_accounts_of_the_studio(apps, schema_editor):
    memberships = apps.get_model("tenants", "Membership").objects
    made = memberships.filter(role="owner", tenant__made_by_provider=False, user__is_staff=False)
    providers = apps.get_model("tenants", "Provider").objects
    for provider_id, user_id in made.values_list("tenant__provider", "user").order_by("-pk"):
        providers.filter(pk=provider_id).update(has_quotas=True, person_id=user_id)


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0002_short_qr_codes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
        migrations.RunPython(mark_accounts_of_the_studio, migrations.RunPython.noop),
    ]
