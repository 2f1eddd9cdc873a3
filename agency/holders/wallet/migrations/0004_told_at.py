from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webwallet", "0003_wallet_link_unopened")]

    operations = [
        migrations.AddField(
            model_name="personallink",
            name="told_at",
            field=models.DateTimeField(null=True),
        ),
    ]
