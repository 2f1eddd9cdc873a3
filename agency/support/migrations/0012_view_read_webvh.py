"""The groups of staff may see which did:webvh of others were read."""

from django.apps import apps as current_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

VIEWED = ("credentials.view_readlog", "credentials.view_readresource")


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
        ("support", "0001_squashed_0_2_0"),
        ("credentials", "0018_read_webvh"),
    ]

    operations = [
        migrations.RunPython(add_permissions, migrations.RunPython.noop),
    ]
