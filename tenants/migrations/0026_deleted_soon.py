from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0025_visitor_wallets_a_day"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="deletion_due_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="notice_due_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddIndex(
            model_name="tenant",
            index=models.Index(
                condition=models.Q(("deletion_due_at__isnull", False)),
                fields=["deletion_due_at"],
                name="tenant_deleted_soon",
            ),
        ),
        migrations.AddConstraint(
            model_name="tenant",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("deletion_due_at", None),
                    ("frozen_at__isnull", False),
                    _connector="OR",
                ),
                name="tenant_deleted_soon_is_frozen",
            ),
        ),
    ]
