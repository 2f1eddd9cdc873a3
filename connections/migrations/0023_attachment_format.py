from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("connections", "0022_second_invitation"),
    ]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="attachment_format",
            field=models.CharField(
                blank=True,
                choices=[("hlindy", "Hlindy"), ("anoncreds", "Anoncreds")],
                db_default="",
                default="",
                max_length=9,
            ),
        ),
    ]
