"""`manage.py backup DIR`: database, tails files and pictures, while services run."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandParser

from agency.ops.backups.writing import make_backup


class Command(BaseCommand):
    help = "Write a backup to a new folder. The services may run meanwhile."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="a folder that does not exist")

    def handle(self, folder: Path, **options: str | int | bool | None) -> None:
        make_backup(folder.absolute(), self.stdout)
        self.stdout.write(
            f"The backup is in {folder}. Try it: manage.py verify_backup {folder}"
        )
