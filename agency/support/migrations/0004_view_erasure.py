"""The groups of staff may read what was deleted and is being removed."""

from django.apps import apps as current_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

VIEWED = ("tenants.view_erasure",)


def add_permissions(apps, schema_editor):
    """Django creates permissions after all migrations; this one is needed now."""
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    create_permissions(current_apps.get_app_config("tenants"), verbosity=0)
    found = Permission.objects.filter(
        content_type__app_label="tenants", codename="view_erasure"
    )
    for group in Group.objects.filter(name__in=["Support", "Operator"]):
        group.permissions.add(*found)


class Migration(migrations.Migration):
    dependencies = [
        ("support", "0003_view_usage"),
        ("tenants", "0013_erasure"),
    ]

    operations = [
        migrations.RunPython(add_permissions, migrations.RunPython.noop),
    ]
