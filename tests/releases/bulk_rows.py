"""Many rows in the database of a release, each a copy of one that is there.

Also by hand: `python -m tests.releases.bulk_rows DATABASE_URL ROWS`.
"""

import sys
from typing import LiteralString

import psycopg
from psycopg import sql

# Per table: the columns that its unique indexes compare, as SQL. `n` counts the copies.
ID: dict[str, LiteralString] = {"id": "gen_random_uuid()"}
TEXT: LiteralString = "'bulk-' || n"
TABLES: dict[str, dict[str, LiteralString]] = {
    "wallets_wallet": ID | {"wallet_id": TEXT, "is_organization": "false"},
    "connections_connection": ID
    | {
        "connection_id": TEXT,
        "token": "''",
        "my_key_id": "gen_random_uuid()",
        "their_former_key": "repeat('k', n % 2)",  # what a migration looks for
        "other_key_id": "NULL::uuid",
        "invitation_key_id": "NULL::uuid",
    },
    "credentials_credential": ID | {"thread_id": TEXT},
    "verifications_verification": ID | {"thread_id": TEXT},
    "webhooks_event": ID | {"object_key": "gen_random_uuid()"},
}
COLUMNS = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = %s
"""
COPY = """
INSERT INTO {table} ({columns}) SELECT {values}
FROM (
    SELECT * FROM {table} AS row ORDER BY length(to_jsonb(row)::text) LIMIT 1
) AS one, generate_series(1, {rows}) AS n
"""


def add_rows(url: str, rows: int) -> None:
    """Add this number of rows to each large table. Nothing refers to them."""
    with psycopg.connect(url, autocommit=True) as database:
        # No keys are made for the copies.
        database.execute("SET session_replication_role = replica")
        for table, changes in TABLES.items():
            columns = [name for (name,) in database.execute(COLUMNS, [table])]
            values = [
                sql.SQL(changes[name]) if name in changes else sql.Identifier(name)
                for name in columns
            ]
            parts = {
                "table": sql.Identifier(table),
                "columns": sql.SQL(", ").join(map(sql.Identifier, columns)),
                "values": sql.SQL(", ").join(values),
                "rows": sql.Literal(rows),
            }
            database.execute(sql.SQL(COPY).format(**parts))
            database.execute(sql.SQL("ANALYZE {table}").format(**parts))


if __name__ == "__main__":
    add_rows(sys.argv[1], int(sys.argv[2]))
