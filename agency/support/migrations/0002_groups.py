"""The groups of staff. What each may do is listed here, and in docs/support.md."""

from django.apps import apps as current_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

VIEWED_BY_SUPPORT = (
    "auth.view_user",
    "connections.view_basicmessage",
    "connections.view_connection",
    "connections.view_inboundmessage",
    "connections.view_outboundmessage",
    "credentials.view_credential",
    "credentials.view_credentialdefinition",
    "credentials.view_publication",
    "credentials.view_publishedobject",
    "credentials.view_revocationregistry",
    "credentials.view_schema",
    "credentials.view_statuslist",
    "tenants.view_agreementacceptance",
    "tenants.view_apikey",
    "tenants.view_asset",
    "tenants.view_auditentry",
    "tenants.view_invitation",
    "tenants.view_membership",
    "tenants.view_network",
    "tenants.view_provider",
    "tenants.view_tenant",
    "verifications.view_verification",
    "verifications.view_verificationpolicy",
    "wallets.view_key",
    "wallets.view_wallet",
    "webhooks.view_attempt",
    "webhooks.view_delivery",
    "webhooks.view_event",
    "webhooks.view_webhook",
)
VIEWED_BY_OPERATORS = (
    "admin.view_logentry",
    "auth.view_group",
    "tenants.view_datakey",
    "tenants.view_idempotencykey",
    "wallets.view_sparekey",
)
DONE_BY_SUPPORT = (
    "support.enable_webhook",
    "support.end_sessions",
    "support.resend_delivery",
    "support.resend_message",
    "support.retry_publication",
)
DONE_BY_OPERATORS = (
    "support.change_member",
    "support.disable_person",
    "tenants.add_apikey",
    "tenants.add_network",
    "tenants.add_tenant",
    "tenants.change_apikey",
    "tenants.change_network",
    "tenants.change_provider",
)
SUPPORT = VIEWED_BY_SUPPORT + DONE_BY_SUPPORT
GROUPS = {
    "Support": SUPPORT,
    "Operator": SUPPORT + VIEWED_BY_OPERATORS + DONE_BY_OPERATORS,
}


def create_groups(apps, schema_editor):
    """Create the groups, or add the permissions to groups of these names.

    Django creates permissions after all migrations; these are needed now.
    """
    for label in {name.partition(".")[0] for name in GROUPS["Operator"]}:
        create_permissions(current_apps.get_app_config(label), verbosity=0)
    Group = apps.get_model("auth", "Group")
    Permission = apps.get_model("auth", "Permission")
    for name, wanted in GROUPS.items():
        group, _ = Group.objects.get_or_create(name=name)
        for one in wanted:
            app, _, codename = one.partition(".")
            found = Permission.objects.filter(
                content_type__app_label=app, codename=codename
            )
            group.permissions.add(*found)


class Migration(migrations.Migration):
    dependencies = [
        ("support", "0001_permissions"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.RunPython(create_groups, migrations.RunPython.noop),
    ]
