"""`manage.py fill_key_pool`: generate the spare keys missing in the pool."""

from django.core.management.base import BaseCommand, CommandParser

from core.telemetry.logs import log_uncaught
from wallets import key_generator, key_queue


class Command(BaseCommand):
    help = "Make the spare keys that are missing in the pool, one at a time."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--show", action="store_true", help="only count what is there"
        )

    def handle(self, show: bool, **options: str | int | bool | None) -> None:
        """Fill the pool unless `show`, then print how many keys it has.

        Each key is committed when it is made. If another process of this host makes
        keys already, this one makes none.
        """
        if not show:
            log_uncaught()
            key_generator.fill_pool(self.stdout.write)
        self.stdout.write(f"spare keys: {key_queue.free_keys().count()}")
        self.stdout.write(f"missing: {key_generator.count_missing()}")
