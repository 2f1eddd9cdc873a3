from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("connections", "0010_trust_ping"),
    ]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="confirms",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="connection",
            name="held_response",
            field=models.BinaryField(null=True),
        ),
    ]
