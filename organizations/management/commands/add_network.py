"""Adds an Indy network, or changes one."""

import os
import sys
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from rest_framework.exceptions import ValidationError

from agency.core.errors import AgencyError
from credentials.ledgers import ledger_of
from organizations.api.serializers import SeedField
from organizations.networks import add_network, genesis_at

SEED = "ENDORSER_SEED"


class Command(BaseCommand):
    help = "Add an Indy network, or change what is given of one."

    def add_arguments(self, parser):
        parser.add_argument("--id", required=True, help="networkId in the API")
        parser.add_argument("--name", default="", help="shown to people")
        parser.add_argument(
            "--genesis", default="", help="file or URL of its pool transactions"
        )
        parser.add_argument(
            "--endorser",
            action="store_true",
            help=f"the agency's endorser: its seed stands in {SEED} or comes from standard input",
        )

    def handle(self, *args, **given):
        try:
            genesis = read(given["genesis"]) if given["genesis"] else None
            seed = endorser_seed() if given["endorser"] else None
            network = add_network(given["id"], given["name"], genesis, seed)
        except AgencyError as error:
            raise CommandError(error.message) from None
        endorser = (
            network.endorser_did or "none: organizations need a role of their own"
        )
        self.stdout.write(f"{network.pk} ({network}). Endorser: {endorser}.")
        self.stdout.write(self.standing(network))

    def standing(self, network):
        """Whether the ledger answers, and what it says of the endorser."""
        registry, did = ledger_of(network), network.endorser_did
        try:
            registry.agreement()
            may_endorse = not did or registry.did_role(did).may_endorse
        except AgencyError as error:
            return self.style.WARNING(f"It is kept, but: {error.message}")
        if not may_endorse:
            return self.style.WARNING(
                "The ledger answers, but the DID is no endorser there."
            )
        return "The ledger answers."


def read(place):
    """The text of a file or of an address."""
    if place.startswith(("http://", "https://")):
        return genesis_at(place)
    try:
        return Path(place).read_text(errors="replace")
    except (OSError, ValueError) as error:
        raise CommandError(f"{place} cannot be read: {error}") from None


def endorser_seed():
    text = os.environ.get(SEED) or sys.stdin.readline().rstrip("\r\n")
    try:
        return SeedField().run_validation(text)
    except ValidationError as error:
        raise CommandError(
            f"The seed of the endorser: {' '.join(error.detail)}"
        ) from None
