"""End the sessions of a person."""

from django.contrib.auth import SESSION_KEY
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.utils import timezone

BATCH_ROWS = 1000


def end_sessions(person: User) -> int:
    """Delete the sessions of a person. Return how many there were.

    Sessions do not name their person in a column, so all that have not expired are
    read, in batches.
    """
    live = Session.objects.filter(expire_date__gt=timezone.now())
    keys = [
        session.pk
        for session in live.iterator(chunk_size=BATCH_ROWS)
        if session.get_decoded().get(SESSION_KEY) == str(person.pk)
    ]
    deleted, _ = Session.objects.filter(pk__in=keys).delete()
    return deleted
