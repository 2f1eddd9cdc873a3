"""Operators may read the list of former data keys, as that of data keys."""

from django.apps import apps as current_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations


def add_permission(apps, schema_editor):
    """Django creates permissions after all migrations; this one is needed now."""
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    create_permissions(current_apps.get_app_config("tenants"), verbosity=0)
    found = Permission.objects.filter(
        content_type__app_label="tenants", codename="view_formerdatakey"
    )
    for group in Group.objects.filter(name="Operator"):
        group.permissions.add(*found)


class Migration(migrations.Migration):
    dependencies = [
        ("support", "0004_view_erasure"),
        ("tenants", "0016_generations_of_data_keys"),
    ]

    operations = [
        migrations.RunPython(add_permission, migrations.RunPython.noop),
    ]
