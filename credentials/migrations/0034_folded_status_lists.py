from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    dependencies = [("credentials", "0033_bulk_file_name")]

    operations = [
        migrations.AddField(
            model_name="statuslist",
            name="full_at",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="statuslist",
            name="changed",
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name="statuslist",
            name="accumulator",
            field=models.TextField(db_default="", default=""),
        ),
        AddConstraintNotValid(
            model_name="statuslist",
            constraint=models.CheckConstraint(
                condition=Q(changed=None, full_at=None)
                | Q(changed=None, full_at=F("timestamp"))
                | Q(
                    changed__isnull=False,
                    full_at__isnull=False,
                    full_at__lt=F("timestamp"),
                ),
                name="list_is_whole_or_differs",
            ),
        ),
    ]
