"""`manage.py verify_keys`: open every sealed value of the database."""

from collections import Counter
from itertools import chain
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError

from agency.studio.accounts.second_factor import verify_factors
from core import faults
from core.work.progress import Progress
from tenants import vault
from tenants.models import DataKey, FormerDataKey, Record
from tenants.sealed_columns import (
    SealedTable,
    batches_of,
    list_sealed_tables,
    opens,
)

SHOWN = 20  # values that do not open, by their ids


class Command(BaseCommand):
    help = (
        "Open every data key and every sealed value, and print how many there are. "
        "Exits with 1 if one does not open. Changes nothing."
    )
    requires_system_checks = []

    def handle(self, **options: str | int | bool | None) -> None:
        """Try all data keys, then all that they seal, and print the numbers by table.

        Raises CommandError, with the first ids of each table, if one does not open.
        """
        self.opened: Counter[str] = Counter()
        self.unopened: Counter[str] = Counter()
        self.examples: dict[str, list[str]] = {}  # of `unopened`, SHOWN of a table
        self.progress = Progress(self.stderr, "{:,} values were tried.")
        for model in (DataKey, FormerDataKey):
            name = model._meta.db_table
            for row in chain.from_iterable(batches_of(model.objects.all())):
                self.count(name, "wrapped", row, unwraps(row, "wrapped"))
                # Only the system's data key has one.
                if getattr(row, "digest_key", None) is not None:
                    self.count(name, "digest_key", row, unwraps(row, "digest_key"))
        for table in list_sealed_tables():
            self.open_table(table)
        # Second factors: sealed texts in the JSON of allauth's table.
        for factor, is_open in verify_factors():
            self.count("mfa_authenticator", "data", factor, is_open)
        self.progress.finish()
        for name, number in sorted(self.opened.items()):
            self.stdout.write(f"{number:>12,}  {name}")
        if self.unopened:
            lines = [
                f"- {table}: {number:,}, as {', '.join(self.examples[table])}"
                for table, number in sorted(self.unopened.items())
            ]
            raise CommandError(
                f"{self.unopened.total():,} values do not open:\n"
                + "\n".join(lines)
                + "\nTheir bytes or the id or organization of their row were changed, "
                "or the data key is another one. Nobody can open them: restore these "
                "rows from a backup. If whole tables are listed, look at the data keys "
                "first (docs/operations/keys.md)."
            )
        self.stdout.write(f"All {self.opened.total():,} values open.")

    def open_table(self, table: SealedTable) -> None:
        for batch in batches_of(table.list_rows()):
            for row in batch:
                for column in table.columns:
                    if getattr(row, column) is not None:
                        self.count(table.name, column, row, opens(row, column))
            faults.fault_point("inside_verification")

    def count(self, table: str, column: str, row: Any, is_open: bool) -> None:
        self.progress.advance(1)
        if is_open:
            self.opened[table] += 1
            return
        self.unopened[table] += 1
        examples = self.examples.setdefault(table, [])
        if len(examples) < SHOWN:
            examples.append(f"{column} of {row.pk}")


def unwraps(row: Record, column: str) -> bool:
    try:
        vault.unwrap(row, column)
    except ImproperlyConfigured:
        return False
    return True
