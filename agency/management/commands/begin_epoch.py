"""`manage.py begin_epoch`: after a restore by means of PostgreSQL itself."""

from typing import Any

from django.core.management.base import BaseCommand

from webhooks.events.epochs import begin_epoch


class Command(BaseCommand):
    help = (
        "Refuse all cursors of the event feed that were given before, because the "
        "database was restored to an earlier state."
    )

    def handle(self, **options: Any) -> None:
        begin_epoch()
        self.stdout.write(
            "A new epoch has begun: earlier cursors get the error database_restored."
        )
