from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("verifications", "0003_support_search"),
    ]

    operations = [
        migrations.AddField(
            model_name="verification",
            name="reason",
            field=models.BinaryField(null=True),
        ),
    ]
