from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0022_taken_places"),
    ]

    operations = [
        migrations.AddField(
            model_name="credential",
            name="ask_due_at",
            field=models.DateTimeField(null=True),
        ),
    ]
