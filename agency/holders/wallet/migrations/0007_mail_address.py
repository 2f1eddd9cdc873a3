from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("webwallet", "0001_squashed_0_2_0")]

    operations = [
        migrations.AddField(
            model_name="personallink",
            name="mail_address",
            field=models.BinaryField(null=True),
        ),
        migrations.AddField(
            model_name="personallink",
            name="mail_language",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=2
            ),
        ),
        migrations.AddField(
            model_name="personallink",
            name="mail_given_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="personallink",
            name="mail_confirmed_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="personallink",
            name="mail_due_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="personallink",
            name="mail_sent_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="personallink",
            name="mail_problem",
            field=models.CharField(
                blank=True, db_default="", default="", max_length=40
            ),
        ),
    ]
