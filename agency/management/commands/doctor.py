"""`manage.py doctor`: what is wrong with this installation, and what to do."""

import json
import sys

from django.core.management.base import BaseCommand, CommandParser

from agency.ops import doctor
from core.version import describe_version


class Command(BaseCommand):
    help = (
        "Look for what operators get wrong. Exit code 1 if there is an error; warnings "
        "alone are 0."
    )
    requires_system_checks = []  # they are among the checks

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--starting",
            action="store_true",
            help="leave out what needs running processes",
        )
        parser.add_argument(
            "--json", action="store_true", help="one JSON object for each finding"
        )

    def handle(self, starting: bool, **options: str | int | bool | None) -> None:
        found = doctor.run(starting)
        for finding in found:
            self.stdout.write(
                json.dumps(finding._asdict())
                if options["json"]
                else f"{finding.level} {finding.name}: {finding.text}\n"
                f"    {finding.advice}"
            )
        errors = sum(finding.level == doctor.ERROR for finding in found)
        if not options["json"]:
            warnings = len(found) - errors
            self.stdout.write(
                f"doctor: {errors} errors, {warnings} warnings. "
                f"Agency {describe_version()}."
            )
        if errors:
            sys.exit(1)
