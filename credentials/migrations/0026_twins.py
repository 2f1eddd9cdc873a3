from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credentials", "0025_card_display"),
    ]

    operations = [
        migrations.AddField(
            model_name="credentialdefinition",
            name="twin_of",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=300
            ),
        ),
        migrations.AddConstraint(
            model_name="credentialdefinition",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("deleted_at", None), models.Q(("twin_of", ""), _negated=True)
                ),
                fields=("tenant", "twin_of"),
                name="one_twin_per_definition",
            ),
        ),
    ]
