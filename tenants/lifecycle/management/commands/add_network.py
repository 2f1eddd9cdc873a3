"""`manage.py add_network`: add an Indy network, or change one."""

import os
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.errors import AgencyError
from credentials.ledgers import ledger_of
from tenants import audit
from tenants.lifecycle.networks import add_network, fetch_genesis
from tenants.lifecycle.provisioning import read_seed
from tenants.models import Network

SEED_VARIABLE = "ENDORSER_SEED"


class Command(BaseCommand):
    help = "Add an Indy network, or change what is given of one."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--id", required=True, help="networkId in the API")
        parser.add_argument("--name", default="", help="shown to people")
        parser.add_argument(
            "--genesis", default="", help="file or URL of its pool transactions"
        )
        parser.add_argument(
            "--endorser",
            action="store_true",
            help=f"set the agency's endorser, by the seed in {SEED_VARIABLE} or stdin",
        )

    def handle(self, *args: Any, **given: Any) -> None:
        try:
            genesis = read_genesis(given["genesis"]) if given["genesis"] else None
            seed = read_endorser_seed() if given["endorser"] else None
            # One transaction, with the audit entry. It calls no ledger.
            network = audit.recorded(
                add_network,
                "network.changed",
                by=audit.actor_of_command("add_network"),
                endorser_set=seed is not None,
            )(given["id"], given["name"], genesis, seed)
        except AgencyError as error:
            raise CommandError(error.message) from None
        endorser = network.endorser_did
        endorser = endorser or "none: organizations need a role of their own"
        self.stdout.write(f"{network.pk} ({network}). Endorser: {endorser}.")
        self.stdout.write(self.ledger_status(network))

    def ledger_status(self, network: Network) -> str:
        """Return whether the ledger responds, and whether the endorser may endorse."""
        ledger = ledger_of(network)
        did = network.endorser_did
        try:
            ledger.agreement()
            may_endorse = not did or ledger.did_role(did).may_endorse
        except AgencyError as error:
            return self.style.WARNING(f"It is stored, but: {error.message}")
        if not may_endorse:
            return self.style.WARNING(
                "The ledger answers, but the DID is no endorser there."
            )
        return "The ledger answers."


def read_genesis(source: str) -> str:
    if source.startswith(("http://", "https://")):
        return fetch_genesis(source)
    try:
        return Path(source).read_text(errors="replace")
    except (OSError, ValueError) as error:
        raise CommandError(f"{source} cannot be read: {error}") from None


def read_endorser_seed() -> bytes:
    text = os.environ.get(SEED_VARIABLE) or sys.stdin.readline().rstrip("\r\n")
    try:
        return read_seed(text)
    except ValueError as error:
        raise CommandError(f"The seed of the endorser: {error}") from None
