"""Operators may undo or end the deletion that an organization's key asked for."""

from django.apps import apps as current_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

DONE = "support.end_deletion"


def add_permission(apps, schema_editor):
    """Django creates permissions after all migrations; this one is needed now."""
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    create_permissions(current_apps.get_app_config("support"), verbosity=0)
    found = Permission.objects.filter(
        content_type__app_label="support", codename="end_deletion"
    )
    for group in Group.objects.filter(name="Operator"):
        group.permissions.add(*found)


class Migration(migrations.Migration):
    dependencies = [
        ("support", "0010_view_key_queue"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="supportaction",
            options={
                "default_permissions": (),
                "managed": False,
                "permissions": [
                    ("resend_message", "Can send a message to another agent again"),
                    ("resend_delivery", "Can send a call of a webhook again"),
                    ("retry_publication", "Can try a publication again now"),
                    ("enable_webhook", "Can enable a webhook"),
                    ("change_member", "Can add a member or change the role of one"),
                    (
                        "end_deletion",
                        "Can undo or end the deletion of an organization",
                    ),
                    ("disable_person", "Can disable the account of a person"),
                    ("end_sessions", "Can end the sessions of a person"),
                ],
            },
        ),
        migrations.RunPython(add_permission, migrations.RunPython.noop),
    ]
