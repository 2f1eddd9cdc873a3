from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0021_grants"),
    ]

    operations = [
        migrations.AddField(
            model_name="tokenstatuslist",
            name="taken",
            field=models.BinaryField(null=True),
        ),
    ]
