from django.db import migrations, models
from django.db.models.functions import Collate, Lower


class Migration(migrations.Migration):
    dependencies = [("tenants", "0006_members")]

    operations = [
        migrations.AddIndex(
            model_name="tenant",
            index=models.Index(
                Collate(Lower("name"), "C"), name="tenant_by_name"
            ),
        ),
    ]
