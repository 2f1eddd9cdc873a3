"""The groups of staff may read the usage by day and the endpoints of DIDs."""

from django.apps import apps as current_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

VIEWED = ("credentials.view_didendpoint", "tenants.view_dailyusage")


def add_permissions(apps, schema_editor):
    """Django creates permissions after all migrations; these are needed now."""
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    for one in VIEWED:
        app, _, codename = one.partition(".")
        create_permissions(current_apps.get_app_config(app), verbosity=0)
        found = Permission.objects.filter(
            content_type__app_label=app, codename=codename
        )
        for group in Group.objects.filter(name__in=["Support", "Operator"]):
            group.permissions.add(*found)


class Migration(migrations.Migration):
    dependencies = [
        ("support", "0002_groups"),
        ("credentials", "0007_did_endpoint"),
        ("tenants", "0010_daily_usage"),
    ]

    operations = [
        migrations.RunPython(add_permissions, migrations.RunPython.noop),
    ]
