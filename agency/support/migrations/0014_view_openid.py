"""The groups of staff may see what wallets of OpenID4VC are served from."""

from django.apps import apps as current_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

VIEWED = (
    "credentials.view_definitionformat",
    "credentials.view_grant",
    "credentials.view_tokenstatuslist",
    "wallets.view_authority",
    "wallets.view_signingkey",
)


def add_permissions(apps, schema_editor):
    """Django creates permissions after all migrations; these are needed now."""
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    for app in ("credentials", "wallets"):
        create_permissions(current_apps.get_app_config(app), verbosity=0)
    found = Permission.objects.filter(
        content_type__app_label__in=["credentials", "wallets"],
        codename__in=[name.partition(".")[2] for name in VIEWED],
    )
    for group in Group.objects.filter(name__in=["Support", "Operator"]):
        group.permissions.add(*found)


class Migration(migrations.Migration):
    dependencies = [
        ("support", "0013_view_own_webvh"),
        ("credentials", "0021_grants"),
        ("wallets", "0010_signing_keys"),
    ]

    operations = [
        migrations.RunPython(add_permissions, migrations.RunPython.noop),
    ]
