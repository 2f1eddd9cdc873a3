from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("credentials", "0005_reason")]

    operations = [
        migrations.AddField(
            model_name="statuslist",
            name="is_final",
            field=models.BooleanField(db_default=True, default=False),
        ),
    ]
