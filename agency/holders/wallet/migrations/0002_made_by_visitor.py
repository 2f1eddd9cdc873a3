from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webwallet", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="personallink",
            name="made_by_visitor",
            field=models.BooleanField(default=False, db_default=False),
        ),
    ]
