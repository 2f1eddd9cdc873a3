"""`manage.py begin_epoch`: after a restore by means of PostgreSQL itself."""

from django.core.management.base import BaseCommand

from core.work import transactions
from wallets.models import SpareKey
from webhooks.events.epochs import begin_epoch


class Command(BaseCommand):
    help = (
        "Refuse all cursors of the event feed that were given before, and forget all "
        "spare keys, because the database was restored to an earlier state."
    )
    requires_system_checks = []

    def handle(self, **options: str | int | bool | None) -> None:
        with transactions.atomic():
            begin_epoch()
            SpareKey.objects.all().delete()  # they may have been used since
        self.stdout.write(
            "A new epoch has begun: earlier cursors get the error database_restored."
        )
