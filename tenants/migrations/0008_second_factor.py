from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0007_support_search"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="requires_second_factor",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
