"""`manage.py fill_key_pool`: generate the definition keys missing in the pool."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from agency.core.logs import log_uncaught
from agency.core.processors import yield_processors
from agency.ops import heartbeats
from wallets import key_pool
from wallets.models import SpareKey


class Command(BaseCommand):
    help = "Make the definition keys that are missing in the pool, one at a time."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--show", action="store_true", help="only count what is there"
        )

    def handle(self, show: bool, **options: Any) -> None:
        """Fill the pool unless `show`, then print how many keys of each size it has.

        Each key is committed when it is made. If another process makes keys already,
        this one makes none.
        """
        if not show:
            log_uncaught()
            # So health and monitoring see that a process fills the pool.
            with heartbeats.while_running("key_pool"):
                yield_processors()
                key_pool.fill_pool(self.stdout.write)
        for number in sorted(
            set(SpareKey.objects.values_list("attributes", flat=True))
        ):
            count = SpareKey.objects.filter(attributes=number).count()
            self.stdout.write(f"{number} attributes: {count}")
        self.stdout.write(f"missing: {len(key_pool.missing_keys())}")
