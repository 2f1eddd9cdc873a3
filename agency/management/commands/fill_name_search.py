"""`manage.py fill_name_search`: let people be found by names of before."""

from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.telemetry.logs import log_uncaught
from credentials import name_filling
from credentials.models import NameKey


class Command(BaseCommand):
    help = "Store what finds people by names that were stored without it."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--again",
            action="store_true",
            help="from the beginning, also for what a former version wrote since",
        )

    def handle(self, again: bool, **options: str | int | bool | None) -> None:
        """Do at once what the workers do a part of every 30 seconds.

        If it is interrupted, the workers continue.
        """
        log_uncaught()
        if again:
            name_filling.begin_again(NameKey.objects.all())
        failed: set[UUID] = set()
        while not name_filling.is_done(failed):
            failed |= name_filling.keep_name_search(failed)
        kinds = [one.digests._default_manager for one in name_filling.fillings()]
        self.stdout.write(f"names that are found: {sum(one.count() for one in kinds)}")
        if failed:
            names = ", ".join(sorted(map(str, failed)))
            raise CommandError(
                f"Names of {len(failed)} organizations are not filled in, as the log "
                f"says: {names}. The workers try again."
            )
