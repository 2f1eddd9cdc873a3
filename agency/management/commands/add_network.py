"""Adds an Indy network, or changes one."""

import os
import sys
from pathlib import Path

from django.core.management.base import BaseCommand, CommandError
from rest_framework.exceptions import ValidationError

from agency import http
from agency.errors import AgencyError
from credentials.registries import registry_of
from credentials.registries.indy.pool import GENESIS_BYTES
from tenants.networks import add_network
from tenants.serializers import SeedField

SEED = "ENDORSER_SEED"


class Command(BaseCommand):
    help = "Add an Indy network, or change what is given of one."

    def add_arguments(self, parser):
        parser.add_argument("--id", required=True, help="networkId in the API")
        parser.add_argument("--name", default="", help="shown to people")
        parser.add_argument("--genesis", default="", help="file or URL of its pool transactions")
        parser.add_argument(
            "--endorser",
            action="store_true",
            help=f"the agency's endorser: its seed stands in {SEED} or comes from standard input",
        )

    def handle(self, *args, **given):
        try:
            genesis = read(given["genesis"]) if given["genesis"] else ""
            seed = endorser_seed() if given["endorser"] else None
            network = add_network(given["id"], given["name"], genesis, seed)
        except AgencyError as error:
            raise CommandError(error.message) from None
        endorser = network.endorser_did or "none: organizations need a role of their own"
        self.stdout.write(f"{network.pk} ({network}). Endorser: {endorser}.")
        self.stdout.write(self.standing(network))

    def standing(self, network):
        """Whether the ledger answers, and what it says of the endorser."""
        try:
            standing = registry_of(network).standing(network.endorser_did or "1" * 22)
        except AgencyError as error:
            return self.style.WARNING(f"It is kept, but: {error.message}")
        if network.endorser_did and not standing.may_write:
            return self.style.WARNING("The ledger answers, and knows no role of the endorser.")
        return "The ledger answers."


def read(place):
    """The text of a file or of an address."""
    if not place.startswith(("http://", "https://")):
        try:
            return Path(place).read_text()
        except (OSError, ValueError) as error:
            raise CommandError(f"{place} cannot be read: {error}") from None
    answer = http.get(place, accept="text/plain, */*", answer_bytes=GENESIS_BYTES)
    if answer.status != 200 or not answer.is_complete:
        raise CommandError(f"{place} answered {answer.status}, or too much.")
    return answer.body.decode(errors="replace")


def endorser_seed():
    text = os.environ.get(SEED) or sys.stdin.readline().rstrip("\r\n")
    try:
        return SeedField().run_validation(text)
    except ValidationError as error:
        raise CommandError(f"The seed of the endorser: {' '.join(error.detail)}") from None
