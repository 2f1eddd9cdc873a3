from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ("tenants", "0033_names_for_all"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="name_search",
            field=models.BooleanField(db_default=True, default=True),
        ),
    ]
