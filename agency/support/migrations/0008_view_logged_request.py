"""The groups of staff may read the log of API calls."""

from django.apps import apps as current_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

VIEWED = ("tenants.view_loggedrequest",)


def add_permissions(apps, schema_editor):
    """Django creates permissions after all migrations; these are needed now."""
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    create_permissions(current_apps.get_app_config("tenants"), verbosity=0)
    found = Permission.objects.filter(
        content_type__app_label="tenants",
        codename__in=[name.partition(".")[2] for name in VIEWED],
    )
    for group in Group.objects.filter(name__in=["Support", "Operator"]):
        group.permissions.add(*found)


class Migration(migrations.Migration):
    dependencies = [
        ("support", "0007_view_bulk"),
        ("tenants", "0022_logged_request"),
    ]

    operations = [
        migrations.RunPython(add_permissions, migrations.RunPython.noop),
    ]
