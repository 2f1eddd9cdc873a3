from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0004_support_search"),
    ]

    operations = [
        migrations.AddField(
            model_name="credential",
            name="reason",
            field=models.BinaryField(null=True),
        ),
    ]
