from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    operations = [
        migrations.CreateModel(
            name="SupportAction",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("resend_message", "Can send a message to another agent again"),
                    ("resend_delivery", "Can send a call of a webhook again"),
                    ("retry_publication", "Can try a publication again now"),
                    ("enable_webhook", "Can enable a webhook"),
                    ("change_member", "Can add a member or change the role of one"),
                    ("disable_person", "Can disable the account of a person"),
                    ("end_sessions", "Can end the sessions of a person"),
                ],
                "managed": False,
                "default_permissions": (),
            },
        ),
    ]
