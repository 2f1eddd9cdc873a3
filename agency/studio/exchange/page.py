"""What the exchange page shows to everybody: the studio's people and support."""

from hashlib import sha256
from typing import Any

from django.utils import timezone

from agency.studio.exchange import steps, words
from agency.studio.exchange.kinds import connection_of
from agency.studio.exchange.timeline import Entry, timeline_of
from agency.studio.objects import badge_of, label_of, name_of
from verifications.proofs import failures

# Seconds for which the page is read again after the last change: webhooks are called
# soon after it.
WATCHED_AFTER_CHANGE = 30


def exchange_context(row: Any) -> dict[str, Any]:
    """What the page shows of a connection, credential or verification.

    For the studio and the admin: without values and links, which the studio's
    page_context() adds. row: loaded as its Kind says. is_watched, version: the browser
    asks for the version again and again while the page is watched, and reloads it when
    that has changed.
    """
    entries = timeline_of(row)
    return {
        "object": row,
        "kind": row.OBJECT_TYPE,
        "title": name_of(row) or row.public_id,
        "state": label_of(row),
        "badge": badge_of(row),
        "steps": steps.steps_of(row),
        "next_step": words.next_step(row),
        "problem": row.problem_in_words,
        "role": words.ROLES[row.role],
        "connection": connection_of(row),
        "checks": checks_of(row),
        "causes": row.list_causes() if row.OBJECT_TYPE == "verification" else [],
        "timeline": entries,
        "has_messages": any(entry.way != "event" for entry in entries),
        "is_watched": is_watched(row),
        "version": version_of(row, entries),
    }


def checks_of(row: Any) -> dict[str, list[failures.CheckInWords]]:
    """The verifier's checks by status. Empty without a verdict."""
    if row.OBJECT_TYPE != "verification":
        return {}
    found: dict[str, list[failures.CheckInWords]] = {}
    for check in row.unsealed_checks() or []:
        found.setdefault(check["status"], []).append(failures.in_words(check))
    return found


def is_watched(row: Any) -> bool:
    """Whether the page is read again. Deliveries follow soon after the last change."""
    if row.OBJECT_TYPE == "connection" and row.multi_party:
        return False
    age = (timezone.now() - row.updated_at).total_seconds()
    return not steps.has_ended(row) or age < WATCHED_AFTER_CHANGE


def version_of(row: Any, entries: list[Entry]) -> str:
    """A digest of all on the page that can change."""
    shown: list[Any] = [row.state, row.sequence, is_watched(row)]
    for entry in entries:
        shown.append((entry.row.pk, entry.status, entry.failures))
        shown += [(one.pk, one.status, one.calls) for one in entry.deliveries]
    return sha256(repr(shown).encode()).hexdigest()[:16]
