from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0024_index_of_ask_due_at"),
    ]

    operations = [
        migrations.AddField(
            model_name="credentialdefinition",
            name="display",
            field=models.JSONField(null=True),
        ),
    ]
