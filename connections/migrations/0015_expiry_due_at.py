from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("connections", "0014_features_asked_at")]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="expiry_due_at",
            field=models.DateTimeField(null=True),
        ),
    ]
