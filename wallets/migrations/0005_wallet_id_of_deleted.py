from django.db import migrations


class Migration(migrations.Migration):
    """The id of a deleted wallet is free: 0004 has built the index for live ones."""

    dependencies = [
        ("wallets", "0004_deleted_at"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="wallet", name="one_wallet_per_id"),
    ]
