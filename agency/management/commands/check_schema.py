"""`manage.py check_schema`: compare the database with schema.json, or write that."""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agency.ops import database_schema
from core.version import __version__


class Command(BaseCommand):
    help = "Compare the tables of the database with those that this version needs."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--write",
            action="store_true",
            help="for developers: write the schema of this migrated database to "
            "schema.json",
        )

    def handle(self, write: bool, **options: str | int | bool | None) -> None:
        found = database_schema.read_schema()
        if write:
            database_schema.write_schema(
                database_schema.leave_out_former_columns(found)
            )
            self.stdout.write(f"Wrote {database_schema.SCHEMA_FILE}.")
            return
        lines = database_schema.find_differences(
            database_schema.expected_schema(), found
        )
        if lines:
            raise CommandError(
                f"The database is not as version {__version__} expects it:\n"
                + "\n".join(f"- {line}" for line in lines)
                + "\nRun manage.py migrate. If it has nothing to apply, released "
                "migrations did not make these tables: restore a backup."
            )
        self.stdout.write(
            f"The database has the tables that version {__version__} needs."
        )
