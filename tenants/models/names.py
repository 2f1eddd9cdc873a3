"""What others read as the name of a person."""

from collections.abc import Iterable
from typing import Any

from allauth.account.models import EmailAddress
from django.contrib.auth.models import User
from django.db.models import Exists, F, OuterRef


def confirms_email(person: str) -> Exists:
    """Whether the person to whom this column leads has confirmed the mail address."""
    rows = EmailAddress.objects.filter(user=OuterRef(person), verified=True)
    return Exists(rows.filter(email__iexact=OuterRef(f"{person}__email")))


def read_confirmed(people: Iterable[Any]) -> None:
    """Read with one query whose mail address is confirmed, for name_of()."""
    found = [person for person in people if person is not None]
    rows = EmailAddress.objects.filter(user__in=found, verified=True)
    own = rows.filter(email__iexact=F("user__email"))
    confirmed = set(own.values_list("user_id", flat=True))
    for person in found:
        person.has_confirmed_email = person.pk in confirmed


def has_confirmed_email(user: Any) -> bool:
    if not hasattr(user, "has_confirmed_email"):
        read_confirmed([user])
    return bool(user.has_confirmed_email)


def name_of(user: User) -> str:
    """How others read who somebody is: the mail address, if it is confirmed.

    Else the id, as anybody may give any address, from which the user name comes too.
    Staff, whom a superuser has made, have their user name then.
    """
    if has_confirmed_email(user):
        return str(user.email)
    return str(user.get_username()) if user.is_staff else f"person {user.pk}"
