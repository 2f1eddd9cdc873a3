"""`manage.py rotate_data_keys [ORGANIZATION]`: seal all values with new data keys."""

import time
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core import faults
from core.database.older_processes import describe_older_processes
from core.work import transactions
from core.work.progress import Progress
from tenants import data_key_rotation as rotation
from tenants import vault
from tenants.models import Tenant

AGE_HOURS = 24
SYSTEM = "system"
# How long is waited for transactions that began before. Longer ones are not of the
# services but, for example, of a backup. What one writes later opens all the same
# (data_key_rotation.py).
TRANSACTION_SECONDS = 60


class Command(BaseCommand):
    help = (
        "Seal every value again with a new data key, while the service runs. Can be "
        "interrupted and repeated: an unfinished rotation is continued."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "organization",
            nargs="?",
            help="its tenantId, or `system` for what belongs to no organization; "
            "without it, all whose data key is older than --older-than",
        )
        parser.add_argument(
            "--older-than",
            type=float,
            default=AGE_HOURS,
            metavar="HOURS",
            help=f"age of the data keys that are replaced (default: {AGE_HOURS})",
        )
        parser.add_argument(
            "--force",
            action="store_true",
            help="also while sessions of the database may be those of release 0.1.0",
        )

    def handle(
        self,
        organization: str | None,
        older_than: float,
        force: bool,
        **options: str | int | bool | None,
    ) -> None:
        """Give the chosen organizations new data keys, and seal their values again.

        Each new data key is committed first, each batch of values by itself. Between
        the two all processes begin to use the new data keys: else one could still seal
        a value with a former key after its row was passed. A repeated call continues
        with the new data key of an unfinished rotation. Raises CommandError if
        processes of release 0.1.0 may run, or if rows do not open.
        """
        if not force and (found := describe_older_processes()):
            raise CommandError(
                f"{found}. If they are processes of release 0.1.0, they could read "
                "nothing that is sealed from now on: restart all with this release "
                "(docs/operations/upgrade.md). If they are another program, end it, or "
                "give --force. Nothing was changed."
            )
        chosen = self.choose(organization, older_than)
        for tenant_id in chosen:
            rotation.create_next_data_key(tenant_id)
        if chosen:
            self.wait_for_writers()
        progress = Progress(self.stderr, "{:,} values are sealed again.")
        unopened = sum(self.rotate(tenant_id, progress) for tenant_id in chosen)
        progress.finish()
        if unopened:
            raise CommandError(
                f"{unopened:,} rows do not open, and keep their data keys. "
                "manage.py verify_keys names them and says what to do."
            )
        self.stdout.write(
            f"{len(chosen):,} data keys were replaced. The former ones are deleted "
            "after a day."
        )

    def choose(
        self, organization: str | None, older_than: float
    ) -> list[rotation.TenantId]:
        """Return whose data keys are replaced; None is the system. For handle()."""
        if organization == SYSTEM:
            vault.system_data_key()  # creates it if there is none
            return [None]
        if organization:
            with suppress(ValueError):
                tenants = Tenant.objects.filter(public_id=UUID(organization))
                if found := tenants.first():
                    return [found.pk]
            raise CommandError(f"There is no organization {organization}.")
        return rotation.list_to_rotate(timedelta(hours=older_than))

    def wait_for_writers(self) -> None:
        """Wait until all processes seal with the new data keys, and have committed."""
        self.stderr.write(f"Waiting {vault.NEWEST_SECONDS:.0f} s for all processes.")
        time.sleep(vault.NEWEST_SECONDS)
        now = transactions.database_time()
        end = time.monotonic() + TRANSACTION_SECONDS
        while transactions.count_older(now) and time.monotonic() < end:
            time.sleep(0.5)

    def rotate(self, tenant_id: rotation.TenantId, progress: Progress) -> int:
        """Seal all values of an organization again. Return how many rows do not open.

        Only if all open, the former data keys are retired.
        """

        def advance(number: int) -> None:
            progress.advance(number)
            if number:
                faults.fault_point("after_sealed_batch")

        unopened = rotation.reseal_values(tenant_id, advance)
        if not unopened:
            rotation.retire_data_keys(tenant_id)
        return unopened
