from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0031_idempotency_leases"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="network",
            name="indy_networks_have_a_genesis",
        ),
        migrations.AlterField(
            model_name="network",
            name="kind",
            field=models.CharField(
                choices=[("local", "Local"), ("indy", "Indy"), ("webvh", "Webvh")],
                max_length=16,
            ),
        ),
        migrations.AddConstraint(
            model_name="network",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("kind", "indy"), models.Q(("genesis", ""), _negated=True)
                    ),
                    models.Q(
                        ("endorser_did", ""),
                        ("genesis", ""),
                        ("kind__in", ["local", "webvh"]),
                    ),
                    _connector="OR",
                ),
                name="indy_networks_have_a_genesis",
            ),
        ),
    ]
