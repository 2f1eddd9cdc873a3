from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0020_visitor_wallets"),
    ]

    operations = [
        migrations.AddField(
            model_name="dailyusage",
            name=name,
            field=models.PositiveIntegerField(db_default=0, default=0),
        )
        for name in ("offers", "valid_proofs", "invalid_proofs")
    ]
