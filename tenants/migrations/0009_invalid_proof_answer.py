from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0008_second_factor"),
    ]

    operations = [
        migrations.AddField(
            model_name="tenant",
            name="invalid_proof_answer",
            field=models.CharField(
                choices=[
                    ("problem-report", "A problem report"),
                    ("ack", "An ack that says false"),
                ],
                db_default="problem-report",
                default="problem-report",
                max_length=14,
            ),
        ),
    ]
