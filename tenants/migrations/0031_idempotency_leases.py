from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0030_invitation_protocol"),
    ]

    operations = [
        migrations.CreateModel(
            name="IdempotencyLease",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("holder", models.UUIDField()),
                ("leased_until", models.DateTimeField()),
            ],
        ),
    ]
