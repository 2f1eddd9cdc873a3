from django.db import migrations, models


def leave_to_the_address(apps, schema_editor):
    """True was the default: nobody asked for it, and receivers that never answer were called again
    and again. What was chosen otherwise stays."""
    webhooks = apps.get_model("webhooks", "Webhook").objects
    webhooks.filter(retry_unconfirmed=True).update(retry_unconfirmed=None)


def repeat(apps, schema_editor):
    webhooks = apps.get_model("webhooks", "Webhook").objects
    webhooks.filter(retry_unconfirmed=None).update(retry_unconfirmed=True)


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="timeouts",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AlterField(
            model_name="webhook",
            name="retry_unconfirmed",
            field=models.BooleanField(null=True),
        ),
        migrations.RunPython(leave_to_the_address, repeat),
    ]
