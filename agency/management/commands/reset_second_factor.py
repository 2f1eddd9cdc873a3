"""`manage.py reset_second_factor`: for somebody who lost app, passkeys and codes."""

from allauth.mfa.models import Authenticator
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.work import transactions
from tenants import audit


class Command(BaseCommand):
    help = "Remove all second factors and recovery codes of a person."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email", help="mail address of the account")

    def handle(self, email: str, **options: str | int | bool | None) -> None:
        remove_second_factors(email)
        self.stdout.write(f"{email} signs in with the password alone now.")


@transactions.atomic()
def remove_second_factors(email: str) -> None:
    """Remove the factors of the accounts with a mail address, and record it.

    CommandError if no account has the address, or no such account a second factor.
    """
    users = get_user_model().objects.filter(email__iexact=email)
    if not users:
        raise CommandError(f"Nobody has the mail address {email}.")
    found = Authenticator.objects.filter(user__in=users)
    if not found:
        raise CommandError(f"{email} has no second factor.")
    actor = audit.actor_of_command("reset_second_factor")
    for user in users.filter(authenticator__in=found).distinct():
        audit.record("person.second_factor_removed", user, by=actor, kind="all")
    found.delete()
