from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0029_mailed_invitations"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="invitation_protocol",
            field=models.CharField(
                choices=[
                    (
                        "connections/1.0",
                        "Connections 1.0, which older wallets read",
                    ),
                    ("out-of-band", "Out-of-band, which newer wallets read"),
                    ("both", "Both: a wallet takes the one that it reads"),
                ],
                db_default="connections/1.0",
                default="connections/1.0",
                max_length=15,
            ),
        ),
    ]
