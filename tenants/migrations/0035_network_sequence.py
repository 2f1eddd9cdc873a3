from django.db import migrations

# Processes of version 0.1.0 count in tenants_network meanwhile, far below.
FIRST_SQL = """
SELECT setval('tenants_networksequence', sequence + 1000000)
FROM tenants_network WHERE kind IN ('local', 'webvh') AND sequence > 0
ORDER BY sequence DESC LIMIT 1
"""


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0034_name_search"),
    ]

    operations = [
        migrations.RunSQL(
            ["CREATE SEQUENCE tenants_networksequence", FIRST_SQL],
            "DROP SEQUENCE tenants_networksequence",
        ),
    ]
