from django.db import migrations, models

from core.database.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False  # the index is built while others write
    dependencies = [("webwallet", "0007_mail_address")]

    operations = [
        BuildIndex(
            model_name="personallink",
            index=models.Index(
                condition=models.Q(("mail_due_at__isnull", False)),
                fields=["mail_due_at"],
                name="wallet_link_mail_due",
            ),
        ),
    ]
