"""`manage.py rotate_master_key`: wrap all data keys by the new master key."""

import time

from django.core.management.base import BaseCommand, CommandError

from core import faults
from core.work.progress import Progress
from tenants import master_key_rotation as rotation
from tenants import vault

PAUSE_SECONDS = 0.5  # while the rest is locked


class Command(BaseCommand):
    help = (
        "Wrap all data keys by AGENCY_MASTER_KEY. They are wrapped by "
        "AGENCY_OLD_MASTER_KEY, and every process knows both. Can be interrupted and "
        "repeated."
    )
    requires_system_checks = []

    def handle(self, **options: str | int | bool | None) -> None:
        """Put the new master key in force, then wrap the older data keys in batches.

        In this order: data keys that are created from now on have the new one, so the
        batches come to an end. Each batch is a transaction, which skips rows that
        others have locked. Raises CommandError for a master key that is not given.
        """
        known = vault.known_master_keys()
        for key_id, number in rotation.count_by_master_key().items():
            if key_id not in known:
                raise CommandError(
                    f"{number:,} data keys are wrapped by the master key {key_id}. Give "
                    "it as AGENCY_OLD_MASTER_KEY. Nothing was changed."
                )
        rotation.put_master_key_in_force()
        progress = Progress(self.stderr, "{:,} data keys are wrapped again.")
        while set(rotation.count_by_master_key()) != {vault.master_key_id()}:
            wrapped = rotation.wrap_batch()
            progress.advance(wrapped)
            faults.fault_point("after_wrapped_batch")
            if not wrapped:
                time.sleep(PAUSE_SECONDS)
        progress.finish()
        total = rotation.count_by_master_key().total()
        self.stdout.write(
            f"All {total:,} data keys are wrapped by the master key "
            f"{vault.master_key_id()}, and no other one opens the database any more."
        )
        if rotation.is_old_key_needless():
            self.stdout.write(
                "Remove AGENCY_OLD_MASTER_KEY and restart all processes. Keep the old "
                "key as long as you keep a backup from before."
            )
