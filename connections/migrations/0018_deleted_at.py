from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("connections", "0017_end_former_keys")]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="deleted_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
