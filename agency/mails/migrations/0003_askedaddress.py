from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("mails", "0002_mailings"),
    ]

    operations = [
        migrations.CreateModel(
            name="AskedAddress",
            fields=[
                (
                    "digest",
                    models.CharField(max_length=64, primary_key=True, serialize=False),
                ),
                ("asked_at", models.DateTimeField()),
            ],
        ),
    ]
