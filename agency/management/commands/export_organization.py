"""`manage.py export_organization ID FILE`: write an organization to a sealed file."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agency.ops.moving import MoveRefused
from agency.ops.moving.exporting import (
    ACTOR,
    export_organization,
    find_organization,
)
from core.errors import OrganizationFrozen
from tenants.lifecycle import freezing


class Command(BaseCommand):
    help = (
        "Write an organization with its keys and records to a file that is sealed by "
        "AGENCY_MOVE_KEY. Can be interrupted and repeated."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("organization", help="its tenantId")
        parser.add_argument("file", type=Path, nargs="?", help="a new file")
        what = parser.add_mutually_exclusive_group()
        what.add_argument(
            "--move",
            action="store_true",
            help="freeze the organization here first, so that the file has everything",
        )
        what.add_argument(
            "--resume",
            action="store_true",
            help="let a frozen organization work here again; writes no file",
        )

    def handle(
        self,
        organization: str,
        file: Path | None,
        move: bool,
        resume: bool,
        **options: str | int | bool | None,
    ) -> None:
        tenant = find_organization(organization)
        if resume and file:
            raise CommandError("--resume writes no file: leave it out.")
        if not file and not resume:
            raise CommandError("Give the file to be written.")
        try:
            if not file:
                freezing.thaw(tenant, ACTOR)
                self.stdout.write(f"{tenant.public_id} works here. Delete its files.")
                return
            header = export_organization(tenant, file.absolute(), move, self.stderr)
        except OrganizationFrozen as error:  # as it is deleted soon
            raise MoveRefused(
                error.code, f"{error.message} See manage.py deletion."
            ) from None
        self.stdout.write(
            f"{file} has {sum(header.rows):,} rows of {tenant.public_id}, and needs "
            f"the move key {header.key}. Import it: manage.py import_organization "
            f"{file}"
        )
        if move:
            self.stdout.write(
                "The organization is frozen here. Never let it work here again once "
                "it works elsewhere."
            )
