"""The groups of staff may see mailings, without texts and addresses."""

from django.apps import apps as current_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

VIEWED = (
    "credentials.view_mailing",
    "credentials.view_mailingrow",
    "credentials.view_mailday",
)


def add_permissions(apps, schema_editor):
    """Django creates permissions after all migrations; these are needed now."""
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    create_permissions(current_apps.get_app_config("credentials"), verbosity=0)
    found = Permission.objects.filter(
        content_type__app_label="credentials",
        codename__in=[name.partition(".")[2] for name in VIEWED],
    )
    for group in Group.objects.filter(name__in=["Support", "Operator"]):
        group.permissions.add(*found)


class Migration(migrations.Migration):
    dependencies = [
        ("support", "0015_view_trust"),
        ("credentials", "0031_mailings"),
    ]

    operations = [
        migrations.RunPython(add_permissions, migrations.RunPython.noop),
    ]
