"""Operators may read which calls wait for keys, and where keys are generated."""

from django.apps import apps as current_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations


def add_permissions(apps, schema_editor):
    """Django creates permissions after all migrations; these are needed now."""
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    create_permissions(current_apps.get_app_config("wallets"), verbosity=0)
    found = Permission.objects.filter(
        content_type__app_label="wallets",
        codename__in=["view_keyrequest", "view_keyfiller"],
    )
    for group in Group.objects.filter(name="Operator"):
        group.permissions.add(*found)


class Migration(migrations.Migration):
    dependencies = [
        ("support", "0009_view_simulated_holder"),
        ("wallets", "0006_one_kind_of_spare_key"),
    ]

    operations = [
        migrations.RunPython(add_permissions, migrations.RunPython.noop),
    ]
