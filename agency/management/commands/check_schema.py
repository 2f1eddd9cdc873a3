"""Compares the database with the schema that this version needs, or writes that schema down."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agency import __version__
from agency.ops import database_schema


class Command(BaseCommand):
    help = "Compare the tables of the database with those that this version needs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--write",
            action="store_true",
            help="developers: make the tables of this freshly migrated database the expected ones",
        )

    def handle(self, write: bool, **options: Any) -> None:
        found = database_schema.actual()
        if write:
            database_schema.write(found)
            self.stdout.write(f"Wrote {database_schema.FILE}.")
            return
        lines = database_schema.differences(database_schema.expected(), found)
        if lines:
            raise CommandError(
                f"The database is not as version {__version__} expects it:\n"
                + "\n".join(f"- {line}" for line in lines)
                + "\nRun manage.py migrate. If it has nothing to apply, released migrations did "
                "not make these tables: restore a backup."
            )
        self.stdout.write(
            f"The database has the tables that version {__version__} needs."
        )
