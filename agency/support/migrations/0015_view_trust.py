"""The groups of staff may see whom organizations trust, and answers that wait."""

from django.apps import apps as current_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

VIEWED = (
    "verifications.view_waitinganswer",
    "wallets.view_trustanchor",
)


def add_permissions(apps, schema_editor):
    """Django creates permissions after all migrations; these are needed now."""
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    for app in ("verifications", "wallets"):
        create_permissions(current_apps.get_app_config(app), verbosity=0)
    found = Permission.objects.filter(
        content_type__app_label__in=["verifications", "wallets"],
        codename__in=[name.partition(".")[2] for name in VIEWED],
    )
    for group in Group.objects.filter(name__in=["Support", "Operator"]):
        group.permissions.add(*found)


class Migration(migrations.Migration):
    dependencies = [
        ("support", "0014_view_openid"),
        ("verifications", "0009_waiting_answers"),
        ("wallets", "0011_trust_anchors"),
    ]

    operations = [
        migrations.RunPython(add_permissions, migrations.RunPython.noop),
    ]
