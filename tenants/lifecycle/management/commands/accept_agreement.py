"""`manage.py accept_agreement`: accept a network's agreement for the endorser.

The transaction author agreement covers what the agency's endorser writes.
"""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.errors import AgencyError
from credentials.ledgers import ledger_of
from tenants import audit
from tenants.lifecycle.networks import accept_agreement
from tenants.models import Network


class Command(BaseCommand):
    help = "Show the agreement of a network and accept it for the agency."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("network", help="its id")
        parser.add_argument(
            "--yes", action="store_true", help="accept it without asking"
        )

    def handle(
        self, network: str, yes: bool, **options: str | int | bool | None
    ) -> None:
        found = Network.objects.filter(pk=network).first()
        if not found:
            raise CommandError("There is no such network.")
        try:
            agreement = ledger_of(found).agreement()
        except AgencyError as error:
            raise CommandError(error.message) from None
        if not agreement:
            self.stdout.write(f"{found} has no agreement.")
            return
        self.stdout.write(f"{agreement.text}\n\nVersion {agreement.version}")
        if not yes and input("Accept it for the agency? [yes/no] ") != "yes":
            raise CommandError("Not accepted.")
        actor = audit.actor_of_command("accept_agreement")
        # None: not for an organization, but for the agency.
        audit.recorded(accept_agreement, "agreement.accepted", found, by=actor)(
            found, None, agreement
        )
        self.stdout.write("Accepted.")
