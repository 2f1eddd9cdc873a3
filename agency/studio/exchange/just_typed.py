"""Who has just typed the values of a card sees them for some minutes, and is logged.

The session has only the ids of those cards, each until when. The values stay sealed
where they are, and another session, or a person who may not reveal them, sees masks.
"""

import time
from typing import NamedTuple
from uuid import UUID

from agency.studio.pages import MemberRequest
from agency.words.states import Subject
from core.work import transactions
from credentials.models import Credential
from tenants import audit
from tenants.models import Permission

SECONDS = 600
MAX_CARDS = 20  # in a session
TYPED = "cards_typed"  # in the session
REASON = "Typed them just before"


class Typed(NamedTuple):
    """until: in seconds since 1970. is_logged: whether the log says who sees them."""

    until: float
    is_logged: bool


def note_typed(request: MemberRequest, row: Credential) -> None:
    """Let this session see the values of a card that it has just offered."""
    store(request, row.pk, Typed(time.time() + SECONDS, False))


def may_see(request: MemberRequest, row: Subject) -> bool:
    """Whether this session has just typed the values. The first time, it is logged.

    Only for an operator or owner, as of other values. If the log cannot be written,
    nothing is shown.
    """
    if not isinstance(row, Credential) or not row.wallet.is_organization:
        return False
    found = read(request).get(str(row.pk))
    if found is None or not request.membership.may(Permission.OPERATE):
        return False
    if not found.is_logged:
        with transactions.atomic():
            audit.record("values.revealed", row, by=request, reason=REASON)
        store(request, row.pk, found._replace(is_logged=True))
    return True


def read(request: MemberRequest) -> dict[str, Typed]:
    """Those whose time is not over, by their ids, oldest first."""
    now = time.time()
    found = {key: Typed(*one) for key, one in request.session.get(TYPED, {}).items()}
    return {key: one for key, one in found.items() if now < one.until}


def store(request: MemberRequest, key: UUID, typed: Typed) -> None:
    kept = read(request) | {str(key): typed}
    request.session[TYPED] = dict(list(kept.items())[-MAX_CARDS:])
