"""The groups of staff may read kiosks."""

from django.apps import apps as current_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

VIEWED = ("verifications.view_kiosk",)


def add_permissions(apps, schema_editor):
    """Django creates permissions after all migrations; this one is needed now."""
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    create_permissions(current_apps.get_app_config("verifications"), verbosity=0)
    found = Permission.objects.filter(
        content_type__app_label="verifications", codename="view_kiosk"
    )
    for group in Group.objects.filter(name__in=["Support", "Operator"]):
        group.permissions.add(*found)


class Migration(migrations.Migration):
    dependencies = [
        ("support", "0005_view_former_data_keys"),
        ("verifications", "0005_kiosk"),
    ]

    operations = [
        migrations.RunPython(add_permissions, migrations.RunPython.noop),
    ]
