from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("webhooks", "0013_share_of_an_address"),
    ]

    operations = [
        migrations.AddField(
            model_name="webhook",
            name="batch",
            field=models.PositiveSmallIntegerField(null=True),
        ),
    ]
