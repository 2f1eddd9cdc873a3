from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0003_quotas")]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="primary_color",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=7
            ),
        ),
        migrations.AddField(
            model_name="tenant",
            name="secondary_color",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=7
            ),
        ),
        migrations.AddField(
            model_name="tenant",
            name="default_language",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=8
            ),
        ),
        migrations.AddField(
            model_name="tenant",
            name="wallet_apps",
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="return_urls",
            field=models.JSONField(null=True),
        ),
    ]
