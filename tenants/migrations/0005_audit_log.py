import django.db.models.deletion
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models

# Retention sets agency.audit_retention for its own transaction (tenants/audit.py).
REFUSE = """
CREATE FUNCTION agency_refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND current_setting('agency.audit_retention', true) = 'on' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'rows of the audit log are never changed or deleted';
END
$$;
CREATE TRIGGER audit_entries_never_change BEFORE UPDATE OR DELETE
ON tenants_auditentry FOR EACH ROW EXECUTE FUNCTION agency_refuse_audit_change();
"""
ALLOW = """
DROP TRIGGER audit_entries_never_change ON tenants_auditentry;
DROP FUNCTION agency_refuse_audit_change();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0004_holder_pages"),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditEntry",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False
                    ),
                ),
                ("action", models.CharField(max_length=40)),
                (
                    "actor_kind",
                    models.CharField(
                        choices=[
                            ("person", "Person"),
                            ("staff", "Staff, in the admin"),
                            ("key", "API key"),
                            ("command", "Command"),
                            ("system", "Agency itself"),
                        ],
                        db_default="system",
                        max_length=8,
                        verbose_name="who",
                    ),
                ),
                ("actor_id", models.CharField(blank=True, max_length=64)),
                (
                    "actor_name",
                    models.CharField(blank=True, max_length=254, verbose_name="name"),
                ),
                ("object_type", models.CharField(max_length=40)),
                ("object_id", models.CharField(max_length=64)),
                (
                    "origin",
                    models.CharField(blank=True, max_length=64, verbose_name="from"),
                ),
                ("reason", models.CharField(blank=True, max_length=500)),
                ("request_id", models.CharField(blank=True, max_length=64)),
                ("details", models.JSONField(default=dict)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="tenants.tenant",
                        verbose_name="organization",
                    ),
                ),
            ],
            options={
                "verbose_name": "audit entry",
                "verbose_name_plural": "audit log",
                "indexes": [
                    models.Index(fields=["tenant", "id"], name="audit_of_tenant"),
                    models.Index(
                        fields=["tenant", "action", "id"], name="audit_by_action"
                    ),
                    models.Index(
                        fields=["tenant", "actor_name", "id"], name="audit_by_actor"
                    ),
                    models.Index(fields=["object_id"], name="audit_by_object"),
                    models.Index(fields=["created_at"], name="audit_by_time"),
                ],
            },
        ),
        migrations.RunSQL(REFUSE, ALLOW),
    ]
