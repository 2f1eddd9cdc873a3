"""The context of the exchange page, for the studio and, without values, the admin."""

import json
from hashlib import sha256
from typing import Any

from django.utils import timezone

from agency.studio.exchange import steps, words
from agency.studio.exchange.kinds import connection_of
from agency.studio.exchange.timeline import Entry, timeline_of
from agency.studio.objects import badge_of, label_of, name_of
from connections import invitation_links
from connections.api.serializers import was_started_by_link
from verifications.proofs import failures

WATCHED_AFTER_CHANGE = 30  # seconds: webhooks are called after the last change


def exchange_context(row: Any) -> dict[str, Any]:
    """What the studio and the admin show: no values, and nothing that can be used."""
    entries = timeline_of(row)
    return {
        "object": row,
        "kind": row.OBJECT_TYPE,
        "title": name_of(row) or row.public_id,
        "state": label_of(row),
        "badge": badge_of(row),
        "steps": steps.steps_of(row),
        "next_step": words.next_step(row),
        "problem": words.problem_in_words(row),
        "role": words.ROLES[row.role],
        "connection": connection_of(row),
        "checks": checks_of(row),
        "timeline": entries,
        "has_messages": any(entry.way != "event" for entry in entries),
        "is_watched": is_watched(row),
        "version": version_of(row, entries),
    }


def link_of(row: Any) -> str:
    """The short link while somebody can use it, or ""."""
    connection = connection_of(row)
    if connection is None or not connection.is_open:
        return ""
    is_its_own = row is connection or was_started_by_link(connection)
    ended = row is not connection and steps.has_ended(row)
    return connection.invitation_url or "" if is_its_own and not ended else ""


def invitation_of(row: Any) -> dict[str, str]:
    """The deep link and the JSON of the invitation of a connection that link_of() shows.

    Not of an offer or a request: their messages name values.
    """
    connection = connection_of(row)
    if row is not connection or invitation_links.shared_request(connection):
        return {}
    shared = invitation_links.shared_message(connection)
    return {
        "deep_link": invitation_links.deep_link(shared),
        "invitation_json": json.dumps(shared, indent=2, ensure_ascii=False),
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
    """Changes with whatever the page shows that can change."""
    shown: list[Any] = [row.state, row.sequence, is_watched(row)]
    for entry in entries:
        shown.append((entry.row.pk, entry.status, entry.failures))
        shown += [(one.pk, one.status, one.calls) for one in entry.deliveries]
    return sha256(repr(shown).encode()).hexdigest()[:16]
