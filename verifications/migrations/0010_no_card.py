from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("verifications", "0009_waiting_answers")]

    operations = [
        migrations.AddField(
            model_name="kiosk",
            name="no_card_text",
            field=models.CharField(db_default="", default="", max_length=300),
        ),
        migrations.AddField(
            model_name="kiosk",
            name="no_card_url",
            field=models.CharField(db_default="", default="", max_length=200),
        ),
    ]
