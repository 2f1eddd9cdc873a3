"""`manage.py deletion ID`: undo or end a deletion that an organization's key asked for.

For organizations without owner and provider account, and before workers start again
after an outage.
"""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agency.ops.moving.exporting import find_organization
from core.errors import AgencyError
from tenants import audit
from tenants.lifecycle.deletion import end_deletion, undo_deletion

ACTOR = audit.actor_of_command("deletion")


class Command(BaseCommand):
    help = "Show, undo or end the deletion that an organization's key asked for."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("organization", help="its tenantId")
        what = parser.add_mutually_exclusive_group()
        what.add_argument("--undo", action="store_true", help="let it work again")
        parser.add_argument(
            "--revoke-key",
            action="store_true",
            help="with --undo: revoke the key that asked for it",
        )
        what.add_argument("--end", action="store_true", help="delete it now")

    def handle(
        self,
        organization: str,
        undo: bool,
        end: bool,
        revoke_key: bool,
        **options: str | int | bool | None,
    ) -> None:
        tenant = find_organization(organization)
        try:
            if undo:
                undo_deletion(tenant, ACTOR, revokes_key=revoke_key)
            elif end:
                end_deletion(tenant, ACTOR)
        except AgencyError as error:
            raise CommandError(f"{error.code}: {error.message}") from None
        due_at = tenant.deletion_due_at
        self.stdout.write(
            f"{tenant} works again."
            if undo
            else f"{tenant} is deleted."
            if end
            else f"{tenant} will be deleted at {due_at:%Y-%m-%d %H:%M} UTC."
            if due_at
            else f"{tenant} is not about to be deleted."
        )
