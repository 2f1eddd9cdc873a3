from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0013_erasure"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="values_kept_days",
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="exchanges_kept_days",
            field=models.PositiveSmallIntegerField(blank=True, null=True),
        ),
    ]
