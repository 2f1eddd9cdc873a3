"""`manage.py restore DIR`: a backup into the database and the storage."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandParser

from agency.ops.backups.restoring import restore_backup
from webhooks.events.epochs import has_epochs


class Command(BaseCommand):
    help = (
        "Restore a backup into the empty database of DATABASE_URL and into the "
        "storage. The services must be stopped."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("folder", type=Path, help="of manage.py backup")
        parser.add_argument(
            "--replace-database",
            action="store_true",
            help="also if the database is not empty: what is in it is lost",
        )

    def handle(
        self, folder: Path, replace_database: bool, **options: str | int | bool | None
    ) -> None:
        restore_backup(folder.absolute(), replace_database, self.stdout)
        also = "" if has_epochs() else " and manage.py begin_epoch"
        self.stdout.write(
            f"The backup is restored. Run manage.py migrate{also}, then start the "
            "services."
        )
