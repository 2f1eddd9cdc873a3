"""`manage.py create_organization`: create an organization and print its keys."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.errors import AgencyError
from core.work import transactions
from tenants import audit
from tenants.lifecycle.provisioning import (
    create_organization,
    new_account,
    require_host,
)


class Command(BaseCommand):
    help = "Create an organization. Its keys are printed now and cannot be read again."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="shown to holders")
        parser.add_argument("--network", help="id of the network it publishes on")
        parser.add_argument(
            "--host", default="", help="a domain that leads here: docs/ledgers.md"
        )
        parser.add_argument("--image-url", default="", help="its logo")
        parser.add_argument(
            "--test", action="store_true", help="for tests only: docs/sandbox.md"
        )
        parser.add_argument(
            "--strict",
            action="store_true",
            help="lists refuse filters that they do not know: docs/errors.md",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(
        self, name: str, network: str | None, image_url: str, **options: Any
    ) -> None:
        if not name.strip() or len(name) > 200:
            raise CommandError("The name needs 1 to 200 characters.")
        try:
            host = require_host(network, options["host"], new_account(name))
            with transactions.atomic():  # with the audit entry, or not at all
                organization = create_organization(
                    name.strip(),
                    image_url=image_url,
                    network_id=network,
                    host=host,
                    is_test=options["test"],
                    strict=options["strict"],
                )
                actor = audit.actor_of_command("create_organization")
                audit.record("organization.created", organization.tenant, by=actor)
        except AgencyError as error:
            raise CommandError(error.message) from None
        values = {
            "tenantId": str(organization.tenant.public_id),
            "accessToken": organization.access_token,
            "subscriptionKey": organization.subscription_key,
            "providerKey": organization.provider_key,
        }
        if options["json"]:
            self.stdout.write(json.dumps(values))
        else:
            for label, value in values.items():
                self.stdout.write(f"{label:16} {value}")
            self.stdout.write("Keep the keys now: they cannot be read again.")
