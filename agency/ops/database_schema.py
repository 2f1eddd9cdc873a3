"""Compare the schema of the database with the schema that this version needs.

The names of applied migrations do not prove what a table looks like: a migration that
was edited after it was applied leaves the old table. So `schema.json` describes our
tables as the migrations of this version create them, and the readiness check compares
them. After a new migration, `manage.py check_schema --write` writes the file from a
migrated database.

The comparison covers what PostgreSQL 14 to 18 describe in the same words: columns with
type and nullability, constraints and indexes with their columns. It leaves out the
expressions of checks and partial indexes, which PostgreSQL versions print differently.
"""

import json
from functools import cache
from pathlib import Path

from django.apps import apps
from django.db import connection

SCHEMA_FILE = Path(__file__).with_name("schema.json")
APPS = (
    "tenants",
    "wallets",
    "webhooks",
    "connections",
    "credentials",
    "verifications",
    "sandbox",
    "holderpages",
    "webwallet",
    "mails",
    "support",
    "ops",
)

# One row for each part of a table: (table, kind, name, description). Types of
# constraints: c check, f foreign key, p primary key, u unique, x exclusion. PostgreSQL
# 18 also lists NOT NULL (n), older versions do not; it is compared as a part of the
# column.
QUERY = """
WITH tables AS (
    SELECT oid, relname FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace AND relname = ANY(%s)
)
SELECT relname, 'column', attname::text,
       format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' not null' ELSE '' END
FROM tables JOIN pg_attribute ON attrelid = tables.oid
WHERE attnum > 0 AND NOT attisdropped
UNION ALL
SELECT relname, 'constraint', conname::text, concat_ws(' ',
       CASE contype WHEN 'c' THEN 'check' WHEN 'f' THEN 'foreign key' WHEN 'p' THEN 'primary key'
                    WHEN 'u' THEN 'unique' ELSE contype::text END,
       (SELECT string_agg(attname, ', ' ORDER BY attname) FROM pg_attribute
        WHERE attrelid = tables.oid AND attnum = ANY(conkey)),
       'to ' || (SELECT other.relname FROM pg_class other WHERE other.oid = confrelid),
       CASE WHEN NOT convalidated THEN 'not valid' END)
FROM tables JOIN pg_constraint ON conrelid = tables.oid
WHERE contype <> 'n'
UNION ALL
SELECT tables.relname, 'index', indexes.relname::text, concat_ws(' ',
       CASE WHEN indisunique THEN 'unique' END,
       (SELECT string_agg(coalesce(attname, '(expression)'), ', ' ORDER BY position)
        FROM unnest(indkey::int2[]) WITH ORDINALITY AS keys(number, position)
        LEFT JOIN pg_attribute ON attrelid = tables.oid AND attnum = number AND number > 0),
       CASE WHEN indpred IS NOT NULL THEN 'where …' END,
       CASE WHEN NOT indisvalid THEN 'not valid' END)
FROM tables JOIN pg_index ON indrelid = tables.oid
JOIN pg_class indexes ON indexes.oid = indexrelid
"""

Schema = dict[str, dict[str, dict[str, str]]]  # {table: {kind: {name: description}}}


def read_schema() -> Schema:
    """Return the schema of our tables in the database, with one query."""
    names = [
        model._meta.db_table
        for app in APPS
        for model in apps.get_app_config(app).get_models()
    ]
    found: Schema = {}
    with connection.cursor() as cursor:
        cursor.execute(QUERY, [names])
        for table, kind, name, description in sorted(cursor.fetchall()):
            found.setdefault(table, {}).setdefault(kind, {})[name] = description
    return found


@cache
def expected_schema() -> Schema:
    """Return the schema that this release expects, from a file read once."""
    return json.loads(SCHEMA_FILE.read_text())


def write_schema(schema: Schema) -> None:
    SCHEMA_FILE.write_text(
        json.dumps(schema, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    )


def leave_out_former_columns(schema: Schema) -> Schema:
    """Return the schema without the columns that only the former version uses.

    The next release drops them while processes of this one still run.
    """
    used = {
        model._meta.db_table: {field.column for field in model._meta.local_fields}
        for app in APPS
        for model in apps.get_app_config(app).get_models()
    }
    return {
        table: kinds
        | {
            "column": {
                name: description
                for name, description in kinds["column"].items()
                if name in used[table]
            }
        }
        for table, kinds in schema.items()
    }


def find_differences(expected: Schema, found: Schema) -> list[str]:
    """Return what is missing or different in `found`, one line each.

    Additional tables and columns are not reported: during an upgrade the database is
    ahead of the code that is still running.
    """
    lines = []
    for table, kinds in expected.items():
        if table not in found:
            lines.append(f"there is no table {table}")
            continue
        for kind, parts in kinds.items():
            has = found[table].get(kind, {})
            for name, description in parts.items():
                if name not in has:
                    lines.append(f"{table} lacks the {kind} {name} ({description})")
                elif has[name] != description:
                    lines.append(
                        f"{table} has the {kind} {name} as ({has[name]}), not "
                        f"({description})"
                    )
    return lines
