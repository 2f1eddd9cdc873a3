from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0016_generations_of_data_keys"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="frozen_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="tenant",
            name="imported_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
