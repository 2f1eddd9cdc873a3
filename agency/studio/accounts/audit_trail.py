"""What people do with their accounts, in the audit log.

Django and allauth announce it by signals, after they have stored it.
"""

from collections.abc import Callable
from typing import Any

from allauth.account import signals as account
from allauth.account.models import EmailAddress
from allauth.mfa import signals as mfa
from allauth.mfa.models import Authenticator
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.dispatch import Signal
from django.http import HttpRequest

from tenants import audit

ACTIONS: dict[Signal, str] = {
    account.user_signed_up: "person.signed_up",
    user_logged_in: "person.signed_in",
    user_logged_out: "person.signed_out",
    account.password_set: "person.password_changed",
    account.password_changed: "person.password_changed",
    account.password_reset: "person.password_changed",
    account.email_added: "person.email_added",
    account.email_changed: "person.email_changed",
    account.email_removed: "person.email_removed",
    mfa.authenticator_reset: "person.recovery_codes_made",
}


def connect_signals() -> None:
    """Record each of these signals. Called once, when the process starts."""
    for signal, action in ACTIONS.items():
        signal.connect(recorder_of(action), weak=False, dispatch_uid=action)
    account.email_confirmed.connect(record_confirmed_address, weak=False)
    mfa.authenticator_added.connect(record_added_factor, weak=False)
    mfa.authenticator_removed.connect(record_removed_factor, weak=False)


def recorder_of(action: str) -> Callable[..., None]:
    def record(
        *, request: HttpRequest | None = None, user: User | None = None, **_: Any
    ) -> None:
        if user is not None:  # nobody was signed in
            actor = audit.actor_of_person(user, request)
            audit.record(action, user, by=actor)

    return record


def record_confirmed_address(
    *, request: HttpRequest, email_address: EmailAddress, **_: Any
) -> None:
    user = email_address.user
    actor = audit.actor_of_person(user, request)
    audit.record("person.email_confirmed", user, by=actor, address=email_address.email)


def record_added_factor(
    *, request: HttpRequest, user: User, authenticator: Authenticator, **_: Any
) -> None:
    actor = audit.actor_of_person(user, request)
    if authenticator.type == Authenticator.Type.RECOVERY_CODES:
        audit.record("person.recovery_codes_made", user, by=actor)
        return
    kind = authenticator.type
    audit.record("person.second_factor_added", user, by=actor, kind=kind)


def record_removed_factor(
    *, request: HttpRequest, user: User, authenticator: Authenticator, **_: Any
) -> None:
    actor = audit.actor_of_person(user, request)
    kind = authenticator.type
    audit.record("person.second_factor_removed", user, by=actor, kind=kind)
