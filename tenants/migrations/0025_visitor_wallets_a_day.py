import django.core.validators
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("tenants", "0024_last_used_address")]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="visitor_wallets_a_day",
            field=models.PositiveIntegerField(
                default=500,
                db_default=500,
                validators=[
                    django.core.validators.MinValueValidator(1),
                    django.core.validators.MaxValueValidator(100000),
                ],
            ),
        ),
    ]
