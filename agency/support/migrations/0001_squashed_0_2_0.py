"""The groups of staff. What each may do is listed here, and in docs/support.md."""

from django.apps import apps as current_apps
from django.contrib.auth.management import create_permissions
from django.db import migrations, models

VIEWED_BY_SUPPORT = (
    "auth.view_user",
    "connections.view_basicmessage",
    "connections.view_connection",
    "connections.view_inboundmessage",
    "connections.view_outboundmessage",
    "credentials.view_bulk",
    "credentials.view_bulkrow",
    "credentials.view_credential",
    "credentials.view_credentialdefinition",
    "credentials.view_didendpoint",
    "credentials.view_publication",
    "credentials.view_publishedobject",
    "credentials.view_revocationregistry",
    "credentials.view_schema",
    "credentials.view_statuslist",
    "sandbox.view_simulatedanswer",
    "sandbox.view_simulatedholder",
    "tenants.view_agreementacceptance",
    "tenants.view_apikey",
    "tenants.view_asset",
    "tenants.view_auditentry",
    "tenants.view_dailyusage",
    "tenants.view_erasure",
    "tenants.view_invitation",
    "tenants.view_loggedrequest",
    "tenants.view_membership",
    "tenants.view_network",
    "tenants.view_provider",
    "tenants.view_tenant",
    "verifications.view_kiosk",
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
    "tenants.view_formerdatakey",
    "tenants.view_idempotencykey",
    "wallets.view_keyfiller",
    "wallets.view_keyrequest",
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
    "support.end_deletion",
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
    replaces = [
        ("support", "0001_permissions"),
        ("support", "0002_groups"),
        ("support", "0003_view_usage"),
        ("support", "0004_view_erasure"),
        ("support", "0005_view_former_data_keys"),
        ("support", "0006_view_kiosk"),
        ("support", "0007_view_bulk"),
        ("support", "0008_view_logged_request"),
        ("support", "0009_view_simulated_holder"),
        ("support", "0010_view_key_queue"),
        ("support", "0011_end_deletion"),
    ]

    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.CreateModel(
            name="SupportAction",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
            ],
            options={
                "permissions": [
                    ("resend_message", "Can send a message to another agent again"),
                    ("resend_delivery", "Can send a call of a webhook again"),
                    ("retry_publication", "Can try a publication again now"),
                    ("enable_webhook", "Can enable a webhook"),
                    ("change_member", "Can add a member or change the role of one"),
                    ("end_deletion", "Can undo or end the deletion of an organization"),
                    ("disable_person", "Can disable the account of a person"),
                    ("end_sessions", "Can end the sessions of a person"),
                ],
                "managed": False,
                "default_permissions": (),
            },
        ),
        migrations.RunPython(create_groups, migrations.RunPython.noop),
    ]
