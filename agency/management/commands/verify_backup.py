"""`manage.py verify_backup DIR`: try whether a backup can be restored and opened."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandParser

from agency.ops.backups.verifying import verify_backup


class Command(BaseCommand):
    help = (
        "Restore a backup into a new database beside that of DATABASE_URL, open every "
        "sealed value and tails file, and drop that database."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="of manage.py backup")

    def handle(self, folder: Path, **options: str | int | bool | None) -> None:
        verify_backup(folder.absolute(), self.stdout)
        self.stdout.write("The backup is whole: everything in it opens.")
