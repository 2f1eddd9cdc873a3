"""`manage.py import_organization FILE`: read an organization from a sealed file."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandParser

from agency.ops.moving.brought import find_brought
from agency.ops.moving.importing import import_organization


class Command(BaseCommand):
    help = (
        "Import all of an organization from a file of export_organization, or "
        "nothing. Can be interrupted and repeated."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--copy",
            action="store_true",
            help="also a file that was written without --move, for a trial",
        )

        parser.add_argument(
            "--trust-issuers",
            action="store_true",
            help="take public objects of issuers that are not here from the file",
        )

    def handle(
        self,
        file: Path,
        copy: bool,
        trust_issuers: bool,
        **options: str | int | bool | None,
    ) -> None:
        made = import_organization(file, copy, trust_issuers, self.stderr)
        self.stdout.write(f"The organization {made.tenant.public_id} works here.")
        brought = find_brought(made.tenant)
        for key in brought.keys:
            kind = key.get_kind_display()
            self.stdout.write(f"Works here: {kind} {key.hint}…, named {key.name!r}")
        for webhook in brought.webhooks:
            self.stdout.write(f"Is called from here: {webhook.url!r}")
        for kiosk in brought.kiosks:
            self.stdout.write(f"Opens here: the kiosk {kiosk.name!r}")
        self.stdout.write(
            f"Open wallets here: {brought.links.count():,} personal links"
        )
        for member in brought.members.select_related("user"):
            self.stdout.write(f"Is {member.role} here: {member.user.email!r}")
        if made.brings_account:
            self.stdout.write(
                "Its account has the limits of QUOTA_…. Staff lift them in the admin."
            )
        for email, role in made.people:
            self.stdout.write(f"No account here, to be invited as {role}: {email}")
        if made.old_keys:
            self.stdout.write(
                f"{made.old_keys:,} API keys were not used since release 0.1.0 and do "
                "not work here. Issue others."
            )
