"""The sessions of a person: which there are, and how they are ended.

A row of allauth's UserSession names the person, the address and the browser of a
session from sign-in on. When it was seen last is in Django's own row: each request
moves its end (SESSION_SAVE_EVERY_REQUEST). So the list costs requests no write.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from core.work import transactions
from core.work.retention import BatchBudget, delete_in_batches

MAX_USER_AGENT = 200  # characters
MAX_SESSIONS = 50  # of one person; a sign-in ends the oldest beyond


@dataclass(frozen=True)
class LiveSession:
    """pk: of the UserSession. user_agent: as the browser gave it at sign-in."""

    pk: int
    key: str
    address: str
    user_agent: str
    signed_in_at: datetime
    last_seen_at: datetime


def list_sessions(person: User) -> list[LiveSession]:
    """Return the sessions that have not expired, the one seen last first."""
    rows = {row.session_key: row for row in rows_of(person)[:MAX_SESSIONS]}
    live = Session.objects.filter(pk__in=rows, expire_date__gt=timezone.now()).order_by(
        "-expire_date"
    )
    age = timedelta(seconds=settings.SESSION_COOKIE_AGE)
    return [
        LiveSession(
            pk=rows[key].pk,
            key=key,
            address=rows[key].ip,
            user_agent=rows[key].user_agent,
            signed_in_at=rows[key].created_at,
            last_seen_at=expires_at - age,
        )
        for key, expires_at in live.values_list("pk", "expire_date")
    ]


def rows_of(person: User) -> QuerySet[UserSession]:
    """Newest first."""
    return UserSession.objects.filter(user=person).order_by("-pk")


def end_sessions(person: User, but: str | None = None) -> int:
    """End the sessions of a person, except the one with the key `but`.

    Return how many of them had not expired.
    """
    return delete_sessions(rows_of(person).exclude(session_key=but or ""))


def end_session(person: User, session_id: int) -> int:
    """End one session of the person. Return 0 if no session has this id."""
    return delete_sessions(rows_of(person).filter(pk=session_id))


@transactions.atomic()
def delete_sessions(rows: QuerySet[UserSession]) -> int:
    """Return how many of the sessions had not expired."""
    keys = list(rows.values_list("session_key", flat=True))
    live = Session.objects.filter(pk__in=keys, expire_date__gt=timezone.now()).count()
    Session.objects.filter(pk__in=keys).delete()
    UserSession.objects.filter(session_key__in=keys).delete()
    return live


def note_session(person: User, key: str, *, address: str, user_agent: str) -> None:
    """Add a session that begins to the list, and end those beyond MAX_SESSIONS."""
    UserSession.objects.update_or_create(
        session_key=key,
        defaults={
            "user": person,
            "ip": address,
            "user_agent": user_agent[:MAX_USER_AGENT],
        },
    )
    oldest = rows_of(person).values_list("pk", flat=True)[MAX_SESSIONS:]
    delete_sessions(UserSession.objects.filter(pk__in=list(oldest)))


def delete_ended_rows() -> int:
    """Delete rows whose session is gone: expired, or signed out."""
    session = Session.objects.filter(pk=OuterRef("session_key"))
    ended = UserSession.objects.filter(~Exists(session))
    return delete_in_batches(ended.only("pk"), BatchBudget())
